"""``faultline clean``: removes what killed commands left behind."""

from pathlib import Path

import click

from harness.app import leftovers, options
from harness.app.cli.output import print_json


@click.command(
    cls=options.Command,
    epilog=options.example("faultline clean", "faultline clean --results nightly"),
)
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="also remove the temporary folders of runs in DIR (results)")  # fmt: skip
@options.json_output
def clean(results: Path, as_json: bool) -> None:
    """Remove what killed commands left behind.

    This includes their processes, containers, networks, volumes and temporary folders, and a
    cluster whose keeper process is gone. What belongs to a command that still runs stays; so do
    results.
    """
    from harness.app import clean as clean_

    removed = clean_.clean(results)
    if as_json:
        print_json(removed)
    else:
        lines = leftovers.sentences(removed) or ["there was nothing to remove"]
        click.echo("\n".join(lines))
