"""``faultline shrink``: the smallest plan that still shows an anomaly."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import fail, print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline shrink results/searches/20261120T204421Z-idempotent-seed1/seed3",
        "faultline shrink results/20261120T161500Z-idempotent-seed7 --anomaly duplicate",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--anomaly", metavar="ID",
              help="the anomaly that smaller plans must show (the most serious one)")  # fmt: skip
@click.option("--minutes", type=options.MINUTES, metavar="M",
              help="start no trial after M minutes (10)")  # fmt: skip
@click.option("--jobs", type=options.JOBS, metavar="N",
              help="number of trials at a time (one for each core)")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the new folder is created in DIR/shrunk (results)")  # fmt: skip
@options.json_output
def shrink(
    folder: Path,
    anomaly: str | None,
    minutes: float | None,
    jobs: int | None,
    results: Path,
    as_json: bool,
) -> int:
    """Find the smallest plan that still shows a simulated run's anomaly, and write a test case.

    Exit status 1: the smaller plan shows the anomaly, as the run did; 64 if the run has none to
    keep.
    """
    request.pin(["simulated"])
    from harness.app import command_line
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.search import campaign
    from harness.app.shrink import shrink as shrink_

    try:
        shrunk = shrink_.run(
            folder,
            results,
            screen=Screen(),
            anomaly=anomaly,
            jobs=campaign.cores() if jobs is None else jobs,
            minutes=shrink_.MINUTES if minutes is None else minutes,
        )
    except Failed as error:
        return fail(str(error))
    if as_json:
        print_json(shrunk)
    else:
        click.echo(shrink_.describe(shrunk, command_line.command("replay")))
    return 1
