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
@click.option("--tables", type=click.Path(path_type=Path), metavar="DIR",
              help="folder that `faultline tables` wrote; --lake is then optional")  # fmt: skip
@click.option("--format", "how", type=click.Choice(["table", "csv", "json"]), default="table",
              help="how the rows are printed (table)")  # fmt: skip
@options.spark_engine
@options.json_output
def sql(
    statement: str, lake: Path | None, tables: Path | None, how: str, as_json: bool
) -> int | None:
    """Ask a lake, or tables of histories, with a statement of Spark SQL.

    The views are runs, plans, faults, anomalies, findings, availability, latencies and throughput;
    docs/lake.md has their columns. With --tables, there are also operations, sends, polls,
    transactions, group_events and history_faults; docs/tables.md has their columns.
    """
    from checkers.session import NoSpark
    from harness.app.lake import add, query
    from harness.app.lake.store import Lake
    from harness.app.tables import store

    chosen = add.chosen(lake) if tables is not None else add.required(lake)
    there = None if chosen is None else Lake.open(chosen)
    if tables is not None:
        store.required(tables)
    try:
        with query.session() as spark:
            answer = query.ask(there, statement, spark, tables)
    except NoSpark as error:
        return fail(str(error))
    click.echo(query.written(answer, "json" if as_json else how))
    return None
