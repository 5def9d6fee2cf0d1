"""Brings what the project needs onto a machine with Python, git and make; standard library only."""
