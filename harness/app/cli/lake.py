"""``faultline lake``: the figures of all runs of many nights in one folder."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli.output import print_json


@click.group(cls=options.Group)
def lake() -> None:
    """All runs of many nights in one folder, to be asked with `faultline sql`."""


@lake.command(
    epilog=options.example(
        "faultline lake add 'results/2026*' results/gates/20261120T204421Z-quick --lake lake",
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN…")
@options.lake
@click.option("--suite", metavar="NAME",
              help="the suite of runs that no gate has made (none)")  # fmt: skip
@options.json_output
def add(paths: tuple[Path, ...], lake: Path | None, suite: str | None, as_json: bool) -> None:
    """Add runs to a lake: folders of runs, of gates and of searches.

    Patterns such as 'results/2026*' are expanded. A run that the lake has already is not added
    again. A run without a verdict, or without other files, is added with what it has.
    """
    from harness.app.lake import add as add_
    from harness.app.progress import Screen

    where = add_.required(lake)
    screen = Screen()
    with screen.many(1.0) as show:
        added = add_.add(paths, where, suite, show)
    if as_json:
        print_json(added._asdict())
    else:
        click.echo(add_.describe(added))
