"""Runs the test of a plan: generators, clients, a nemesis, and the recording of every operation."""
