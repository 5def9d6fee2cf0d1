"""Asks a lake, and the tables of histories, with Spark SQL."""

import csv
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from harness.app import temporary, terminal
from harness.app.lake import schema, views
from harness.app.lake.store import Lake
from harness.app.refused import Refused
from harness.app.tables import store
from harness.app.tables import views as table_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
FORMATS = ("table", "csv", "json")
CELL_MAX = 60
"""So many characters of a cell does a table show."""


class Answer(NamedTuple):
    """The rows that a statement returned."""

    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


@contextmanager
def session() -> Iterator["SparkSession"]:
    """Start a Spark session for the block; raises :class:`~checkers.session.NoSpark`."""
    from checkers import session as session_

    with temporary.folder(None, "faultline-sql-") as home:
        started = session_.start(home)
        try:
            yield started
        finally:
            session_.stop(started)


def ask(
    lake: Lake | None, statement: str, spark: "SparkSession", tables: Path | None = None
) -> Answer:
    """Return what a statement of Spark SQL returns, given the views of a lake and of a folder of
    tables.

    Raises :class:`~harness.app.refused.Refused` with Spark's own first sentence for a statement
    that is wrong.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger

    for name in SPARK_LOGGERS:  # they print each error of SQL as JSON
        PySparkLogger.getLogger(name).disabled = True
    with ExitStack() as stack:
        if lake is not None:
            make_views(stack.enter_context(lake.reading()), spark, views.named(statement))
        if tables is not None:
            stack.enter_context(store.locked(tables))
            table_views.make(tables, spark)
        try:
            frame = spark.sql(statement)
            table = frame.toArrow()
        except (PySparkException, Py4JError) as error:
            raise Refused(f"sql: {reason(str(error))}") from None
    return Answer(frame.columns, [dict(row) for row in table.to_pylist()])


def make_views(
    paths: Sequence[Path], spark: "SparkSession", names: Collection[str] = views.VIEWS
) -> None:
    """Create these views of :mod:`harness.app.lake.views` over these files.

    Columns that a file of an older version lacks are null.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    kind = from_arrow_schema(schema.ROW)
    if paths:
        uris = [path.resolve().as_uri() for path in paths]
        rows = spark.read.schema(kind).parquet(*uris)
    else:
        rows = spark.createDataFrame([], kind)
    rows.createOrReplaceTempView(views.ROWS)
    for name in names:
        spark.sql(views.VIEWS[name].query).createOrReplaceTempView(name)


def reason(message: str) -> str:
    """Return Spark's message for an error without the statement, its plan and the JVM's stack."""
    lines = [line.strip() for line in message.strip().splitlines()]
    end = next((place for place, line in enumerate(lines) if _ends(line)), len(lines))
    text = " ".join(line for line in lines[:end] if line)
    return text.partition(" SQLSTATE:")[0] or "the statement failed"


def _ends(line: str) -> bool:
    return line.startswith(("==", "at ", "JVM stacktrace", "'Project", "+-", ";", "---"))


def written(answer: Answer, how: str) -> str:
    """Return the rows as text in one of :data:`FORMATS`, without control characters."""
    if how == "json":
        return terminal.json_text([{k: _plain(v) for k, v in row.items()} for row in answer.rows])
    cells = [[_cell(row[name]) for name in answer.columns] for row in answer.rows]
    if how == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([list(answer.columns), *cells])
        return text.getvalue().rstrip("\n")
    return _table(answer, cells)


def _table(answer: Answer, cells: Sequence[Sequence[str]]) -> str:
    shown = [[_short(terminal.line(cell)) for cell in row] for row in (answer.columns, *cells)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    is_number = [
        all(isinstance(row[name], int | float | Decimal | None) for row in answer.rows)
        for name in answer.columns
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in shown
    ]
    rule = "  ".join("-" * width for width in widths)
    count = len(cells)
    return "\n".join((lines[0], rule, *lines[1:], f"({count:,} row{'' if count == 1 else 's'})"))


def _short(text: str) -> str:
    return text if len(text) <= CELL_MAX else f"{text[: CELL_MAX - 1]}…"


def _cell(value: Any) -> str:
    value = _plain(value)
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: times as text, decimal numbers as numbers."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(name): _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case bytes():
            return value.hex()
        case _:
            return value
