"""``faultline trends``: what became better or worse over the runs of a lake."""

from pathlib import Path
from typing import Any

import click

from harness.app import options
from harness.app.cli.output import print_json
from harness.app.refused import Refused


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline trends --lake lake --suite nightly",
        "faultline trends --lake lake --baseline 3.9.1 --page trends.html",
    ),
)
@options.lake
@click.option("--suite", metavar="NAME", help="only runs of this suite (all)")
@click.option("--baseline", metavar="COMMIT|RELEASE",
              help="compare the latest commit with this commit, or each release with this release"
                   " (the versions before the last change)")  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path), metavar="FILE.html",
              help="also write a page with plots")  # fmt: skip
@options.json_output
def trends(
    lake: Path | None, suite: str | None, baseline: str | None, page: Path | None, as_json: bool
) -> int:
    """Compare anomalies, recovery, throughput and latencies from version to version.

    Exit status 1 if the latest versions are worse than the baseline beyond noise, else 0.
    """
    from harness.app.lake import add
    from harness.app.lake import trends as trends_
    from harness.app.lake.store import Lake

    found, series = trends_.find(Lake.open(add.required(lake)), suite, baseline)
    if page is not None:
        _write(page, found, series)
    if as_json:
        print_json(found)
    else:
        click.echo(trends_.describe(found))
    return 1 if found.worse else 0


def _write(page: Path, found: Any, series: Any) -> None:
    """Write the page with the user's own umask; raises Refused if that is not possible."""
    from harness.app import private
    from harness.app.lake import trends_page

    try:
        if page.exists() and not page.is_file():
            raise Refused(f"--page {page}: this path exists and is not a regular file")
        with private.as_asked():
            page.parent.mkdir(parents=True, exist_ok=True)
            trends_page.render(page, found, series)
    except OSError as error:
        raise Refused(f"--page {page}: {error.strerror}") from None
