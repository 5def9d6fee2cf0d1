"""Progress lines of the set-up, and the error that ends it when something cannot be installed."""

import sys


class CannotGoOn(Exception):
    """Something required is missing and cannot be installed; the message says what to install."""


def say(what: str) -> None:
    """Print on standard error what the set-up does now."""
    sys.stderr.write(f"set-up: {what}\n")
    sys.stderr.flush()
