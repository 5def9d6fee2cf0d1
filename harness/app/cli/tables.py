"""``faultline tables``: histories become Parquet tables that users can query."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli.output import print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline tables 'results/2026*' --to tables",
        'faultline sql "select f, type, count(*) from operations group by 1, 2" --tables tables',
    ),
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="DIR|FILE…")  # fmt: skip
@click.option("--to", "root", required=True, type=click.Path(path_type=Path), metavar="DIR",
              help="folder of the tables; it is created if it is missing or empty")  # fmt: skip
@options.json_output
def tables(paths: tuple[Path, ...], root: Path, as_json: bool) -> None:
    """Write the tables of histories: folders of runs, or bare files.

    The tables are operations, sends, polls, transactions, group_events and faults; docs/tables.md
    has their columns. The files of a run that the tables have already are replaced.
    """
    from harness.app.progress import Screen
    from harness.app.tables import add

    screen = Screen()
    with screen.many(1.0) as show:
        added = add.add(paths, root, screen.say, show)
    if as_json:
        print_json(added._asdict())
    else:
        click.echo(add.describe(added))
