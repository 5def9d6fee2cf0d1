"""The schemas of the tables, and their description in the documents."""

from pathlib import Path

from harness.app.lake import views
from harness.app.tables import schema


def test_documents_have_the_columns(repository: Path) -> None:
    """docs/tables.md has the tables that ``python -m harness.app.tables.schema`` prints."""
    assert schema.page() in (repository / "docs" / "tables.md").read_text()


def test_views_have_names_of_their_own() -> None:
    """No view of a table has the name of a view of the lake."""
    assert not {table.view for table in schema.TABLES.values()} & set(views.VIEWS)
