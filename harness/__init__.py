"""Runs a plan against a target: asks, records, hands over to the checkers."""
