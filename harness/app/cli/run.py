"""``faultline run``: one test, from a plan file and options."""

from pathlib import Path
from typing import Any

import click

from checkers import engine
from harness.app import options, terminal
from harness.app.cli import request
from harness.app.cli.output import fail
from harness.app.refused import Refused


def test_options(command: Any) -> Any:
    """Add the options that ``run`` and ``soak`` have in common."""
    for option in reversed((
        click.argument("plan_file", required=False, type=click.Path(path_type=Path),
                       metavar="[PLAN.toml]"),
        click.option("--workload", metavar="NAME",
                     help="the operations of the clients (idempotent); README.md lists all"),
        click.option("--nemesis", metavar="A,B",
                     help="kinds of faults to inject; none, or all that the target offers (all)"),
        click.option("--rate", "rate_hz", type=options.RATE, metavar="HZ",
                     help="writes per second (the workload's own rate)"),
        click.option("--concurrency", type=int, metavar="N",
                     help="number of logical clients at a time (5)"),
        click.option("--seed", type=options.SEED, metavar="N",
                     help="seed of all random choices (0)"),
        options.judged_by,
        options.spark_engine,
        options.strict,
        click.option("--results", type=click.Path(path_type=Path), metavar="DIR",
                     help="the run's folder is created in DIR (results)"),
        options.lake,
        options.plan_options,
        options.cluster_file,
        options.json_output,
    )):  # fmt: skip
        command = option(command)
    return command


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline run --workload idempotent --nemesis kill,partition --seed 7",
        "faultline run nightly.toml --seed 8 --json",
        "faultline run --time-limit 3600 --watch",
    ),
)
@test_options
@click.option(
    "--time-limit",
    "time_limit_s",
    type=options.SECONDS,
    metavar="S",
    help="seconds that the workload runs (60)",
)
@click.option(
    "--watch",
    is_flag=True,
    help="also judge the history while it is recorded, and end at the first illegal anomaly",
)
def run(**given: Any) -> int:
    """Run one test: start a cluster, run a workload under faults, judge the history.

    Options override the plan file, which uses the same names.
    """
    return run_test(given, {})


def run_test(given: dict[str, Any], defaults: dict[str, Any], **how: Any) -> int:
    """Run the test that these options describe, and return the exit status.

    ``defaults`` are fields of the plan that neither a plan file nor an option names, of its options
    those that its workload has; ``how`` is passed on to :func:`run_plan`.
    """
    plan_file, cluster = given.pop("plan_file"), given.pop("cluster")
    target = given["target"] or request.target_in(plan_file)
    request.pin([target])
    request.select_cluster(cluster, target, confirmed=given.pop("yes_break_it"))
    from checkers.expectations import STRICT
    from harness.app import plan_resolution, service, toml_lines
    from harness.app.lake import add

    settings, mutants = given.pop("settings"), given.pop("mutants")
    as_json, watch = given.pop("as_json"), given.pop("watch")
    results, lake, inline = given.pop("results"), given.pop("lake"), given.pop("inline")
    fields: dict[str, Any] = {"nemesis": (plan_resolution.ALL,)}
    if plan_file is not None:
        fields |= plan_resolution.from_toml(plan_file)
    usual = defaults.pop("options", {})
    fields = defaults | fields
    nemesis = given.pop("nemesis")
    if nemesis is not None:
        fields["nemesis"] = plan_resolution.names_of(nemesis)
    if given.pop("strict"):
        fields["expect"] = {**fields.get("expect", {}), **STRICT}
    with toml_lines.about(plan_file, options.given()):
        plan = request.plan_from(fields, settings, mutants, given)
        plan = plan_resolution.resolve(plan_resolution.with_options(plan, usual))
    for line in plan_resolution.missing_faults(plan, fields["nemesis"]):
        click.echo(line, err=True)
    where = results or Path(fields.get("results", "results"))
    into = add.opened(lake, fields.get("lake"))
    inline = fields.get("inline") if inline is None else inline
    if watch and engine.selected().remote is not None and inline is not True:
        raise Refused("--watch: a server of Spark Connect cannot watch a run; use --inline")
    if watch and service.of(plan.workload) == "zookeeper":
        raise Refused(f"--watch: {plan.workload} can be judged only when its history is complete")
    return run_plan(plan, where, inline=inline, as_json=as_json, lake=into, watch=watch, **how)


def run_plan(
    plan: Any,
    results: Path,
    *,
    inline: bool | None,
    as_json: bool,
    lake: Any = None,
    watch: bool = False,
    report_s: float | None = None,
) -> int:
    """Run the plan, print the verdict and return the exit status.

    ``watch`` also judges the run while it lasts; ``report_s`` is how often it is reported on.

    ``inline=None`` chooses by target: a simulated run is small, and would be over before a Spark
    session has started. The run is added to the ``lake`` (:class:`~harness.app.lake.store.Lake`).
    """
    from checkers.verdict import exit_status
    from harness.app import catalogue, service
    from harness.app.check import describe
    from harness.app.progress import Screen
    from harness.app.run import Failed, run

    if inline is None:
        is_small = catalogue.TARGETS[plan.target].is_virtual
        inline = is_small or service.of(plan.workload) == "zookeeper"
    try:
        (verdict, findings), folder = run(
            plan, results, inline=inline, screen=Screen(), watch=watch, report_s=report_s
        )
    except Failed as error:
        _add(error.folder, lake)
        return fail(str(error))
    _add(folder, lake)
    if as_json:
        click.echo(terminal.escaped(verdict.to_json().decode()), nl=False)
    else:
        click.echo(describe(verdict, findings, folder))
    return exit_status(verdict)


def _add(folder: Path | None, lake: Any) -> None:
    """Add a run to the lake, if both exist; the exit status does not depend on it."""
    if lake is None or folder is None:
        return
    from harness.app.lake.add import add_run

    why = add_run(lake, folder, kept=folder)
    if why is not None:
        click.echo(terminal.sentence(f"{folder} was not added to {lake.folder}: {why}"), err=True)
