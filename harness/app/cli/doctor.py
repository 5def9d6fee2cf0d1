"""``faultline doctor``: what a cluster is, what it promises, and which workloads it can run."""

import click

from harness.app import options, terminal
from harness.app.cli.output import UNAVAILABLE, print_json


@click.command(
    cls=options.Command,
    epilog=options.example(
        "faultline doctor --bootstrap localhost:9092",
        "faultline doctor --bootstrap kafka-1:9092,kafka-2:9092 --json",
    ),
)
@click.option("--bootstrap", required=True, metavar="HOST:PORT[,...]",
              help="brokers of the cluster, without encryption and authentication")  # fmt: skip
@options.json_output
def doctor(bootstrap: str, as_json: bool) -> int | None:
    """Examine a cluster without changing it.

    Reports the release that its API versions suggest, features, brokers, the controller, settings
    that decide what is illegal, and which workloads are possible. Exit status 69 if no broker
    answers.
    """
    from harness.app import doctor as doctor_

    addresses = doctor_.addresses(bootstrap)
    diagnosed = doctor_.examine(addresses)
    if diagnosed is None:
        where = ", ".join(map(str, addresses))
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
