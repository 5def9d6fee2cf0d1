"""``faultline search``: many simulations with drawn plans."""

from pathlib import Path
from typing import Any

import click

from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import fail, print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline search --runs 1000",
        "faultline search --minutes 60 --keep-going --nemesis kill,partition --seed 5000",
        "faultline search held.toml --mutant ack-on-local-append",
        "faultline search --system zookeeper --runs 100",
    ),
)
@click.argument("plan_file", required=False, type=click.Path(path_type=Path), metavar="[PLAN.toml]")
@click.option("--runs", type=options.COUNT, metavar="N",
              help="maximum number of runs (100; with --minutes, no maximum)")  # fmt: skip
@click.option("--minutes", type=options.MINUTES, metavar="M",
              help="start no run after M minutes")  # fmt: skip
@click.option("--jobs", type=options.JOBS, metavar="N",
              help="number of runs at a time (one for each core)")  # fmt: skip
@click.option("--seed", type=options.SEED, default=1, metavar="FIRST", help="the first seed (1)")
@click.option("--workload", metavar="NAME", help="the workload of all runs (drawn for each run)")
@click.option("--system", metavar="NAME",
              help="kafka, or zookeeper: ensembles without brokers (kafka)")  # fmt: skip
@click.option("--nemesis", metavar="A,B", help="the kinds of faults of all runs")
@click.option("--mutant", "mutants", multiple=True, metavar="NAME",
              help="plant this bug in every broker; may be repeated")  # fmt: skip
@click.option("--set", "settings", multiple=True, metavar="WHOSE.KEY=VALUE",
              help="set KEY of a table of the plan in all runs")  # fmt: skip
@click.option("--results", type=click.Path(path_type=Path), metavar="DIR",
              help="the search's folder is created in DIR/searches (results)")  # fmt: skip
@click.option("--keep", type=options.KEEP, default=0, metavar="N",
              help="number of folders of valid runs to keep (0)")  # fmt: skip
@click.option("--keep-going", is_flag=True, help="do not stop at the first anomaly")
@click.option("--spark", is_flag=True,
              help="at the end, judge all histories again in one Spark job")  # fmt: skip
@click.option("--coverage", is_flag=True,
              help="count which branches of the rules the runs reach (coverage.json)")  # fmt: skip
@click.option("--guided", is_flag=True,
              help="change plans whose runs have reached rare states")  # fmt: skip
@options.lake
@options.spark_engine
@options.json_output
def search(
    plan_file: Path | None,
    runs: int | None,
    minutes: float | None,
    jobs: int | None,
    seed: int,
    workload: str | None,
    system: str | None,
    nemesis: str | None,
    mutants: tuple[str, ...],
    settings: tuple[str, ...],
    results: Path | None,
    keep: int,
    keep_going: bool,
    spark: bool,
    coverage: bool,
    guided: bool,
    lake: Path | None,
    as_json: bool,
) -> int:
    """Run many simulations, each with a plan drawn from its own seed.

    Only what neither an option nor the plan file sets is drawn. Exit status 1 if any run is
    invalid; else 70 if any failed, Spark judged any differently, or the search was interrupted;
    else 2 if any is unknown.
    """
    request.pin(["simulated"])
    from harness.app import command_line, plan_resolution
    from harness.app.lake import add
    from harness.app.progress import Screen
    from harness.app.refused import Refused
    from harness.app.rules import figures
    from harness.app.run import Failed
    from harness.app.search import campaign, outcome

    fields: dict[str, Any] = {} if plan_file is None else plan_resolution.from_toml(plan_file)
    if workload is not None:
        fields["workload"] = workload
    if system is not None:
        fields["system"] = system
    if nemesis is not None:
        fields["nemesis"] = plan_resolution.names_of(nemesis)
    if mutants:
        fields["mutants"] = mutants
    fields = plan_resolution.override(fields, settings)
    where = results or Path(fields.pop("results", "results"))
    fields.pop("results", None)
    if fields.pop("inline", True) is False:
        raise Refused("inline = false: a search judges inline; --spark judges all runs once more")
    into = add.opened(lake, fields.pop("lake", None))
    asked = campaign.SearchRequest(
        pinned=fields,
        first=seed,
        runs=campaign.RUNS if runs is None and minutes is None else runs,
        minutes=minutes,
        jobs=campaign.cores() if jobs is None else jobs,
        keep=keep,
        enough=None if keep_going else 1,
        spark=spark,
        coverage=coverage,
        guided=guided,
        lake=into,
    )
    try:
        summary = campaign.run(asked, where, Screen())
    except Failed as error:
        return fail(str(error))
    if as_json:
        print_json(summary)
    else:
        click.echo(outcome.describe(summary, command_line.command("replay")))
        if coverage:
            click.echo(figures.describe(figures.read(Path(summary.folder))))
    if summary.spark_failed is not None:
        fail(f"judging all histories together failed: {summary.spark_failed}")
    return outcome.exit_status(summary)
