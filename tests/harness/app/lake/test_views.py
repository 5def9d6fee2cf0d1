"""The views of a lake, and their description in the documents."""

from pathlib import Path
from typing import Any

import pytest

from harness.app.lake import query, views
from harness.app.lake.store import Lake


def test_documents_have_the_columns(repository: Path) -> None:
    """docs/lake.md has the tables that ``python -m harness.app.lake.views`` prints."""
    text = (repository / "docs" / "lake.md").read_text()
    assert views.page() in text


@pytest.mark.spark
def test_columns_are_those_of_the_table(tmp_path: Path, spark: Any) -> None:
    """Each view has exactly the columns of its table, with these types."""
    lake = Lake.create(tmp_path / "lake")
    with lake.reading() as paths:
        query.make_views(paths, spark)
    for name, view in views.VIEWS.items():
        stated = [(column, kind) for column, (kind, _) in view.columns.items()]
        assert spark.table(name).dtypes == stated, name


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("select * from Runs r join `faults` using (run_id)", ["runs", "faults"]),
        ("show views", list(views.VIEWS)),
    ],
)
def test_which_views_a_statement_needs(statement: str, names: list[str]) -> None:
    """Only the views that a statement names are created; without names, all."""
    assert views.named(statement) == names


def test_a_run_is_described() -> None:
    """Each view has the run's id as its first column, by which views are joined."""
    assert {next(iter(view.columns)) for view in views.VIEWS.values()} == {"run_id"}
