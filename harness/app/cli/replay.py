"""``faultline replay``: the plan of a run's folder again, or a simulation of it."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import fail, print_json
from harness.app.cli.run import run_plan
from harness.app.refused import Refused


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline replay results/20261120T161500Z-idempotent-seed7",
        "faultline replay results/searches/20261120T204421Z-idempotent-seed1/seed3"
        " --target processes",
    ),
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--target", metavar="NAME", help="run on this target instead of the recorded one")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N",
              help="seeds to try when a red run of another target is simulated (10)")  # fmt: skip
@click.option("--jobs", type=click.IntRange(min=1), metavar="N",
              help="number of these simulations at a time (one for each core)")  # fmt: skip
@options.judged_by
@options.spark_engine
@click.option("--results", type=click.Path(path_type=Path), default="results", metavar="DIR",
              help="the new run's folder is created in DIR (results)")  # fmt: skip
@options.cluster_file
@options.json_output
def replay(
    folder: Path,
    target: str | None,
    seeds: int | None,
    jobs: int | None,
    inline: bool | None,
    results: Path,
    cluster: Path | None,
    yes_break_it: bool,
    as_json: bool,
) -> int:
    """Run the plan of a run's folder again: same seed, same faults in the same order.

    With --target simulated a red run on another target is simulated, with more seeds until the same
    anomaly shows: exit status 1 if an anomaly shows, 0 if none does, 2 if that is unknown.
    """
    where = target or request.target_in(folder / "plan.json")
    request.pin([where])
    request.select_cluster(cluster, where, confirmed=yes_break_it)
    from harness.app import plan_resolution, reproduce
    from harness.app import replay as replay_

    plan = replay_.plan_of(folder)
    if target == "simulated" != plan.target and reproduce.recorded_anomalies(folder):
        return _reproduce(folder, results, seeds, jobs, inline=inline, as_json=as_json)
    if seeds is not None or jobs is not None:
        raise Refused(
            "--seeds and --jobs apply only to --target simulated, for an INVALID run of another"
            " target"
        )
    calm = replay_.without_faults(plan)
    plan = calm or plan
    if target is not None:
        plan = replay_.retarget(plan, target)
    elif (changed := replay_.changed(plan)) is not None:
        click.echo(changed, err=True)
    resolved = plan_resolution.resolve(plan)
    if calm is not None:
        click.echo("this run has no scheduled faults, so it is repeated without faults", err=True)
    return run_plan(resolved, results, inline=inline, as_json=as_json)


def _reproduce(
    folder: Path,
    results: Path,
    seeds: int | None,
    jobs: int | None,
    *,
    inline: bool | None,
    as_json: bool,
) -> int:
    """Test whether a simulation shows the anomaly of a run on real processes."""
    from harness.app import command_line, reproduce
    from harness.app.progress import Screen
    from harness.app.run import Failed
    from harness.app.search import campaign

    if inline is False:
        raise Refused("--spark: simulations of a recorded run are always judged in this process")
    try:
        reproduction = reproduce.run(
            folder,
            results,
            screen=Screen(),
            seeds=reproduce.SEEDS if seeds is None else seeds,
            jobs=campaign.cores() if jobs is None else jobs,
        )
    except Failed as error:
        return fail(str(error))
    if as_json:
        print_json(reproduction)
    else:
        click.echo(
            reproduce.describe(
                reproduction, command_line.command("replay"), command_line.command("shrink")
            )
        )
    return reproduce.exit_status(reproduction)
