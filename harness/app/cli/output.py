"""Prints the errors and the JSON of every verb; an error's function returns the exit status."""

from typing import Any

import click

from harness.app import exits, terminal

WRONG_REQUEST = 64
UNAVAILABLE = 69
FAILED = exits.FAILED


def refuse(line: str) -> int:
    """Print one line without control characters, whatever the request was."""
    click.echo(f"faultline: {terminal.sentence(' '.join(line.split()))}", err=True)
    return WRONG_REQUEST


def fail(line: str) -> int:
    """Print why faultline failed, in one line."""
    click.echo(f"faultline failed: {terminal.sentence(line)}", err=True)
    return FAILED


def print_json(value: Any) -> None:
    """Print the value as JSON, without control characters."""
    click.echo(terminal.json_text(value))
