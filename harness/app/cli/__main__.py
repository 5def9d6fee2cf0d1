"""Runs the command line: ``python -m harness.app.cli``."""

from harness.app.cli import main

main()
