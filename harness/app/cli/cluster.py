"""``faultline cluster``: a cluster that keeps running after the command has ended."""

from typing import Any

import click

from harness.app import options
from harness.app.cli import request
from harness.app.cli.output import UNAVAILABLE, fail, print_json


@click.group(cls=options.Group)
def cluster() -> None:
    """A cluster for experiments; it keeps running after the command has ended."""


@cluster.command(
    epilog=options.example(
        "faultline cluster up --brokers 3 --set broker.num.partitions=6",
        "faultline cluster up --port 9092",
    )
)
@options.plan_options
@click.option("--port", type=int, metavar="N",
              help="port of broker 1; broker 2 has N+1, and so on (any free ports); without"
                   " brokers, of ZooKeeper servers")  # fmt: skip
@options.json_output
def up(
    settings: tuple[str, ...],
    mutants: tuple[str, ...],
    port: int | None,
    as_json: bool,
    **given: Any,
) -> int | None:
    """Start a cluster, and print its bootstrap servers."""
    from harness.app import cluster, plan_resolution

    plan = request.plan_from({"nemesis": (plan_resolution.NONE,)}, settings, mutants, given)
    plan = plan_resolution.standalone(plan, {"auto.create.topics.enable": "true"})
    try:
        there = cluster.up(plan, lambda line: click.echo(line, err=True), port)
    except cluster.CannotStart as error:
        return fail(str(error))
    if as_json:
        print_json(there)
    else:
        click.echo(there.bootstrap)
    return None


@cluster.command(epilog=options.example("faultline cluster status"))
@options.json_output
def status(as_json: bool) -> int:
    """Is a cluster up, and where? Exit status 69 if none is."""
    from harness.app import cluster

    there = cluster.status()
    if as_json:
        print_json(there)
    elif there is None:
        click.echo("down")
    else:
        click.echo(f"up at {there.bootstrap}, logs and data in {there.folder}")
    return UNAVAILABLE if there is None else 0


@cluster.command(epilog=options.example("faultline cluster down"))
@options.json_output
def down(as_json: bool) -> int | None:
    """Stop the cluster and remove its data, even if its keeper was killed or still starts it."""
    from harness.app import cluster

    try:
        was_up = cluster.down()
    except cluster.CannotStart as error:
        return fail(str(error))
    if as_json:
        print_json({"was_up": was_up})
    else:
        click.echo("down" if was_up else "no cluster was up")
    return None
