"""The one sentence that a set-up ends in when it cannot go on."""

import sys


class CannotGoOn(Exception):
    """Something is missing and cannot be had; the message says what to install, in one sentence."""


def say(what: str) -> None:
    """Tell the person at the terminal what happens now."""
    sys.stderr.write(f"set-up: {what}\n")
    sys.stderr.flush()
