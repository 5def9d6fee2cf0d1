"""``faultline doctor``: what a cluster is, what it promises, and which workloads it can run."""

from pathlib import Path

import click

from harness.app import options, terminal
from harness.app.cli.output import UNAVAILABLE, print_json
from harness.app.refused import Refused


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline doctor --bootstrap localhost:9092",
        "faultline doctor --bootstrap kafka-1:9092,kafka-2:9092 --json",
        "faultline doctor --cluster my-cluster.toml",
    ),
)
@click.option("--bootstrap", metavar="HOST:PORT[,...]",
              help="brokers of the cluster, without encryption and authentication")  # fmt: skip
@click.option("--cluster", type=click.Path(path_type=Path), metavar="FILE",
              help="cluster file: also report which faults are possible")  # fmt: skip
@options.json_output
def doctor(bootstrap: str | None, cluster: Path | None, as_json: bool) -> int | None:
    """Examine a cluster without changing it.

    Reports the release that its API versions suggest, features, brokers, the controller, settings
    that decide what is illegal, and which workloads are possible; with a cluster file also which
    faults are, and which hooks are missing for the others. Exit status 69 if no broker answers.
    """
    from harness.app import doctor as doctor_

    if (bootstrap is None) == (cluster is None):
        raise Refused("doctor: name either --bootstrap HOST:PORT or --cluster FILE")
    if cluster is not None:
        diagnosed, where = doctor_.examine_file(cluster), f"the addresses in {cluster}"
    else:
        addresses = doctor_.addresses(bootstrap or "")
        diagnosed, where = doctor_.examine(addresses), ", ".join(map(str, addresses))
    if diagnosed is None:
        click.echo(f"faultline: {terminal.sentence(f'no broker answers at {where}')}", err=True)
        if as_json:
            print_json(None)
        return UNAVAILABLE
    if as_json:
        print_json(diagnosed)
    else:
        for line in doctor_.lines(diagnosed):
            click.echo(terminal.line(line))
    return None
