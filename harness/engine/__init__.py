"""Runs a plan's test: asks generators, lets clients and a nemesis act, and records it all."""
