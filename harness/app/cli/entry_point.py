"""Runs a verb and turns every way in which it can end into an exit status."""

import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from harness.app import exits, private, signals, terminal
from harness.app.cli.output import FAILED, WRONG_REQUEST, fail, refuse
from harness.app.cli.request import Program
from harness.app.cli.verbs import faultline
from harness.app.refused import Refused
from harness.simulation import determinism


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a verb and exit: 0 valid, 1 invalid, 2 unknown, 64 a wrong request, 70 faultline failed.

    A wrong request is reported in one line.
    """
    with terminal.filtered(), private.writing():
        status = _status_of(arguments)
    exits.leave(status)


def _status_of(arguments: Sequence[str] | None) -> int:
    """Run a verb and return its exit status."""
    try:
        if determinism.is_pinned():
            determinism.install()  # before anything binds a clock
        with signals.as_interrupts():
            status = faultline.main(
                args=None if arguments is None else list(arguments),
                prog_name="faultline",
                standalone_mode=False,
                obj=Program(is_whole_process=arguments is None),
            )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = WRONG_REQUEST
    except click.UsageError as error:
        status = refuse(error.format_message())
    except Refused as error:
        status = refuse(str(error))
    except (click.Abort, KeyboardInterrupt):
        click.echo("faultline: interrupted", err=True)
        status = FAILED
    except MemoryError:
        status = fail("there is not enough memory; ulimit -v shows whether this shell has a limit")
    except OSError as error:
        status = fail(str(error))
    except ImportError as error:  # numpy's message has many lines, and the reason in its last one
        reason = str(error).strip().splitlines() or ["unknown"]
        status = fail(f"a library cannot be loaded: {reason[-1]}")
    except SystemExit as error:  # a library called sys.exit with a status of its own
        status = 0 if not error.code else fail(f"a library called sys.exit({error.code!r})")
    except Exception as error:  # noqa: BLE001 - Python's own status for it, 1, means invalid
        click.echo(traceback.format_exc(), err=True)
        status = fail(f"{type(error).__name__}: {error}")
    return status or 0
