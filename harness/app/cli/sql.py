"""``faultline sql``: a lake of runs is asked with Spark SQL."""

from pathlib import Path

import click

from harness.app import options
from harness.app.cli.output import fail


@click.command(
    cls=options.Command,
    epilog=options.example(
        'faultline sql "select verdict, count(*) from runs group by verdict" --lake lake',
        'faultline sql "select * from faults where not proved" --lake lake --format csv',
    ),
)
@click.argument("statement", metavar="SELECT")
@options.lake
@click.option("--format", "how", type=click.Choice(["table", "csv", "json"]), default="table",
              help="how the rows are printed (table)")  # fmt: skip
@options.spark_engine
@options.json_output
def sql(statement: str, lake: Path | None, how: str, as_json: bool) -> int | None:
    """Ask a lake with a statement of Spark SQL.

    The views are runs, plans, faults, anomalies, findings, availability, latencies and throughput;
    docs/lake.md has their columns.
    """
    from checkers.session import NoSpark
    from harness.app.lake import add, query
    from harness.app.lake.store import Lake

    there = Lake.open(add.required(lake))
    try:
        with query.session() as spark:
            answer = query.ask(there, statement, spark)
    except NoSpark as error:
        return fail(str(error))
    click.echo(query.written(answer, "json" if as_json else how))
    return None
