"""Hostile inputs for the command line, and the rules that every answer to them must follow."""
