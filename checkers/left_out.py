"""Notes on what the reader of a history leaves out of its table.

They are metadata of the table, also in ``history.parquet``, so that a verdict can mention them.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec
import pyarrow as pa

_TORN, _FIELDS = b"torn", b"unknown fields"


def noted(table: pa.Table, torn: str | None, fields: Mapping[str, int]) -> pa.Table:
    """Return the table with notes on an incomplete last event and on unknown fields.

    ``torn`` is a sentence about the last event; ``fields`` counts the fields that no checker knows,
    in no matter what order, which depends on how many lines were read at once.
    """
    metadata = dict(table.schema.metadata or {})
    if torn is not None:
        metadata[_TORN] = torn.encode()
    if fields:
        counts = fields_of(table) + Counter(fields)
        metadata[_FIELDS] = msgspec.json.encode(dict(sorted(counts.items())))
    return table.replace_schema_metadata(metadata) if metadata else table


def torn(table: pa.Table) -> str | None:
    """Return what was left out at the end of a history, as one sentence."""
    metadata = table.schema.metadata or {}
    return metadata[_TORN].decode(errors="replace") if _TORN in metadata else None


def fields_of(table: pa.Table) -> "Counter[str]":
    """Return the fields that no checker knows, each with its count. A file of another writer may
    have anything in this place, which then counts as no fields."""
    try:
        return Counter(
            msgspec.json.decode((table.schema.metadata or {})[_FIELDS], type=dict[str, int])
        )
    except (KeyError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Counter()
