"""Installs what the project needs on a machine with Python, git and make; standard library only."""
