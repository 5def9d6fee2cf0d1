"""Hostile inputs for the command line, and the rules that each answer to them follows."""
