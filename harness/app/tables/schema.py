"""The tables of histories: their columns, and their description in the documents."""

from typing import NamedTuple

import pyarrow as pa

VERSION = 1
"""The version of these schemas; it is in each file and in the layout."""
MARK = b"faultline.tables.version"
"""The key of the metadata that has the version."""

_TEXT, _INT, _FLAG = pa.string(), pa.int64(), pa.bool_()


class Table(NamedTuple):
    """A table of histories."""

    meaning: str
    columns: dict[str, tuple[pa.DataType, str]]
    """By name: the type, and the meaning."""
    view: str
    """The name of its view in SQL."""
    by_partition: bool = False
    """Whether its files are laid out by partition, too."""

    @property
    def in_folders(self) -> tuple[str, ...]:
        """The columns whose values are in the names of folders, and not in the files."""
        return ("run", "partition") if self.by_partition else ("run",)

    @property
    def whole(self) -> pa.Schema:
        """All columns."""
        return pa.schema([(name, kind) for name, (kind, _) in self.columns.items()])

    @property
    def of_files(self) -> pa.Schema:
        """The columns of a file, with the version."""
        fields = [field for field in self.whole if field.name not in self.in_folders]
        return pa.schema(fields, {MARK: str(VERSION).encode()})


_RUN = {"run": (_TEXT, "the name of the run's folder, or of the history's file")}
_OP = {"op": (_INT, "the index of the operation's last event")}
_PROCESS = {"process": (_INT, "the process")}
_PARTITION = {"partition": (_TEXT, "the partition, as `topic-partition`")}
_START = {"start_ns": (_INT, "the time of the first event, in nanoseconds since the run began")}
_END = {"end_ns": (_INT, "the time of the last event")}
_OUTCOME = {"outcome": (_TEXT, "`ok`, `fail`, or `info` for what may have happened")}
_IN_TXN = {"in_transaction": (_FLAG, "whether the operation is a transaction")}

TABLES = {
    "operations": Table(
        "one row for each operation of a client, in the order of the last events",
        _RUN
        | _OP
        | {"invoked": (_INT, "the index of its first event")}
        | _PROCESS
        | {
            "f": (_TEXT, "the operation function, such as `send`"),
            "type": (
                _TEXT,
                "`ok`, `fail` or `info`; an invocation without a completion is `info`",
            ),
        }
        | _START
        | _END
        | {"error": (_TEXT, "the error of the last event; null without one")},
        "operations",
    ),
    "sends": Table(
        "one row for each record that a client tried to write",
        _RUN
        | _PARTITION
        | _OP
        | _PROCESS
        | {
            "value": (_INT, "the value of the record"),
            "offset": (_INT, "the acknowledged offset; null if it is not known"),
        }
        | _OUTCOME
        | _IN_TXN
        | {"proven": (_FLAG, "whether `outcome` is `info` and the record is known to be written")}
        | _START
        | _END,
        "sends",
        by_partition=True,
    ),
    "polls": Table(
        "one row for each record that was delivered, in the order of delivery",
        _RUN
        | _PARTITION
        | _OP
        | _PROCESS
        | {
            "value": (_INT, "the value of the record"),
            "offset": (_INT, "its offset; null if it is not known"),
        }
        | _OUTCOME
        | _IN_TXN
        | _END,
        "polls",
        by_partition=True,
    ),
    "transactions": Table(
        "one row for each transaction (an operation `txn`)",
        _RUN
        | _OP
        | _PROCESS
        | {
            "transactional_id": (
                _TEXT,
                "the transactional id of the process; null if it reported none",
            ),
            "outcome": (
                _TEXT,
                "`ok`, `fail` or `info` of the operation; a planned abort can be `ok`,"
                " and the outcome of its records in `sends` is then `fail`",
            ),
            "sends": (_INT, "its rows in `sends`"),
            "polls": (_INT, "its rows in `polls`"),
        }
        | _START
        | _END,
        "transactions",
    ),
    "group_events": Table(
        "one row for each event of a consumer group in a partition, and for each offset of a log"
        " that a leader reported",
        _RUN
        | _OP
        | _PROCESS
        | {
            "group": (_TEXT, "the consumer group; null for events of a log"),
            "kind": (
                _TEXT,
                "`commit`, `committed` (a fetch of the committed offset), `assigned`, `revoked`,"
                " `lost`; of a log: `log_start`, `high_watermark`, `last_stable`,"
                " `delete_records`",
            ),
        }
        | _PARTITION
        | {
            "generation": (_INT, "the generation of a rebalance; null if it was not reported"),
            "offset": (_INT, "the offset; null if it is not known"),
            "metadata": (_INT, "the code of the commit's metadata; null without metadata"),
        }
        | _OUTCOME
        | {"in_transaction": (_FLAG, "whether it is part of a transaction")}
        | _START
        | _END,
        "group_events",
    ),
    "faults": Table(
        "one row for each fault that was requested",
        _RUN
        | {
            "id": (_INT, "the number of the fault in its run"),
            "fault": (_TEXT, "the kind of the fault"),
            "targets": (_TEXT, "what it affected, as JSON"),
            "from_ns": (_INT, "when it was requested"),
            "to_ns": (_INT, "when its heal was complete; null if it was not healed"),
            "proved": (_FLAG, "whether it was measured to have taken effect"),
            "how": (_TEXT, "how the effect was measured"),
        },
        "history_faults",
    ),
}
"""The tables by name."""


def page() -> str:
    """Return the tables of ``docs/tables.md``."""
    parts = []
    for name, table in TABLES.items():
        rows = [f"| `{column}` | {kind} | {text} |"
                for column, (kind, text) in table.columns.items()]  # fmt: skip
        head = f"### {name}\n\nThis table has {table.meaning}.\n\n| column | type | meaning |"
        parts.append("\n".join((head, "|---|---|---|", *rows)))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
