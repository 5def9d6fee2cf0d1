"""The tables of histories as views of a Spark session."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness.app.tables import store
from harness.app.tables.schema import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make(root: Path, spark: "SparkSession") -> None:
    """Create a view of each table. Raises :class:`~harness.app.refused.Refused`."""
    from pyspark.sql.pandas.types import from_arrow_schema

    there = store.required(root).resolve()
    for name, table in TABLES.items():
        rows = spark.read.schema(from_arrow_schema(table.whole)).parquet((there / name).as_uri())
        rows.select(*table.columns).createOrReplaceTempView(table.view)
