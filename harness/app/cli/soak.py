"""``faultline soak``: a test of many hours, judged while it lasts, with a report every hour."""

from typing import Any

import click

from harness.app import options
from harness.app.cli.run import run_test, test_options

DEFAULTS = {"time_limit_s": 24 * 3600.0, "rate_hz": 5.0}
"""A day at the rate of a short run would leave more records than the final reads can read."""
OPTIONS = {"final_time_limit_s": 1800.0, "late_topics": 0}
"""All topics exist from the start, so that the last hours are like the first ones, and a growth of
memory has another cause than the load."""


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline soak --hours 24 --workload transactions",
        "faultline soak --hours 24 --target simulated --seed 7",
    ),
)
@test_options
@click.option("--hours", type=options.HOURS, metavar="H",
              help="hours that the workload runs (the plan's time limit, or 24)")  # fmt: skip
@click.option("--report-every", "report_min", type=options.MINUTES, default=60.0, metavar="MIN",
              help="minutes between two reports (60)")  # fmt: skip
def soak(hours: float | None, report_min: float, **given: Any) -> int:
    """Run one test for many hours; end it at the first illegal anomaly.

    The history is judged while it is recorded, as by run --watch. A report every hour says what
    clients did, how long writes took, and how much memory everything has.
    """
    given |= {"time_limit_s": None if hours is None else hours * 3600, "watch": True}
    return run_test(given, {**DEFAULTS, "options": OPTIONS}, report_s=report_min * 60)
