"""Reads histories of Jepsen's Kafka workload (``jepsen.tests.kafka``), which Jepsen stores in EDN.

Operations are the same as this project's except for their keys, which are integers there. A
transactional run makes every operation a transaction, and still calls those of one kind ``send`` or
``poll``: in a history with one ``txn``, all operations on records are transactions.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers import edn, events, left_out, pieces, vocabulary
from checkers.events import Event
from checkers.pieces import Progress
from model.history import BadHistory
from model.op import NEMESIS

GROUP = "jepsen"
"""The name given to the one consumer group."""

_RECORDS = ("send", "poll", "txn")
_KEYS = ("assign", "subscribe")
_FIELDS = frozenset(("index", "time", "type", "process", "f", "value", "error", "rebalance-log"))
_TXN = re.compile(r":f\s+:txn\b")
_PROGRESS_EVERY = 1000


def read(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``history.edn``, one map after the other or all in one vector.

    A torn last map is left out. Raises :class:`BadHistory` for anything else that is not an event
    of such a run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path} is not text: {error}") from error
    in_transactions = _TXN.search(text) is not None
    maps = _Maps(text, progress)
    converter = _Events(in_transactions=in_transactions)
    try:
        table = events.table(converter.event(op) for op in maps)
    except edn.BadEdn as error:
        raise BadHistory(f"{path}, line {error.line}: {error}") from error
    except (BadHistory, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise BadHistory(f"{path}, line {edn.line(text, maps.at)}: {why}") from error
    return left_out.noted(table, maps.torn, converter.unknown)


def line_of(path: Path, row: int) -> int:
    """Return the line on which an event ends, given its row number from 0."""
    text = path.read_text(encoding="utf-8")
    maps = _Maps(text, lambda done: None)
    next(islice(maps, row, None))
    return edn.line(text, maps.at)


class _Maps:
    """Iterates over the maps of a history, up to the last one, which may be torn."""

    def __init__(self, text: str, progress: Progress) -> None:
        self._text = text
        self._progress = progress
        self.at = 0
        """The position in the text at which the last map ends."""
        self.torn: str | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        found = 0
        try:
            for at, op in edn.elements(self._text):
                self.at = at
                if not isinstance(op, dict):
                    raise BadHistory(f"{str(op)[:80]!r} is not an operation")
                found += 1
                yield op
                if found % _PROGRESS_EVERY == 0:
                    self._progress(at / len(self._text))
        except edn.Unfinished as error:
            if not found:
                raise
            self.torn = f"the end of the file, from line {error.line} on, is torn and was left out"
        self._progress(1.0)


class _Events:
    """Converts Jepsen's operations to events of this project."""

    def __init__(self, *, in_transactions: bool) -> None:
        self._in_transactions = in_transactions
        self._count = 0
        self._time_ns = 0
        self.unknown: Counter[str] = Counter()
        """Fields that are ignored, each with its count."""

    def event(self, op: dict[str, Any]) -> Event:
        """Convert one operation to an event.

        Old histories have no indices and times: the row number stands for both.
        Jepsen gives an invocation the time for which its generator had planned it, which may be a
        little before the completion that is recorded before it. Such an invocation gets the time of
        that completion.
        """
        place = self._count
        self._count += 1
        self.unknown.update(str(name) for name in op if name not in _FIELDS)
        index, process, f = op.get("index", place), op.get("process"), op.get("f")
        if op.get("type") not in pieces.TYPES or process is None:
            raise BadHistory(f"event {index} has no type or process, so it is not an operation")
        if not isinstance(f, str):
            raise BadHistory(f"event {index} has {str(f)[:80]!r} in :f, which is not a name")
        time_ns = op.get("time", place)
        if type(index) is not int or type(time_ns) is not int:
            raise BadHistory(f"event {index} has an index or a time that is not a whole number")
        if op["type"] == "invoke" and time_ns >= 0:
            time_ns = max(time_ns, self._time_ns)
        self._time_ns = time_ns
        is_client = type(process) is int
        if is_client and not 0 <= process < 1 << 31:
            raise BadHistory(f"event {index} is of process {process}: clients are numbered from 0")
        if not is_client and not isinstance(process, str):
            raise BadHistory(
                f"event {index} is of process {process!r}, which is neither a name nor a number"
            )
        value, error = op.get("value"), op.get("error")
        if is_client:
            value = _value(f, op, index)
            f = "txn" if self._in_transactions and f in _RECORDS else f
        return Event(
            index=index,
            time_ns=time_ns,
            process=process if is_client else NEMESIS,
            type=op["type"],
            f=f,
            value=value if is_client else _as_json(value),
            error=None if error is None else str(_name(error)),
        )


def _value(f: str, op: dict[str, Any], index: int) -> Any:
    value = op.get("value")
    if value is None or f not in (*_RECORDS, *_KEYS):
        return None  # for example, what a client looked up about topics
    if not isinstance(value, list):
        raise BadHistory(f"event {index}: {value!r} is not a list of micro-operations")
    if f in _KEYS:
        return [str(key) for key in value]
    return [*_rebalances(op.get("rebalance-log")), *(_micro_op(given, index) for given in value)]


def _micro_op(given: Any, index: int) -> list[Any]:
    match given:
        case ["send", key, sent]:
            return ["send", str(key), sent]
        case ["poll"] | ["poll", None]:
            return ["poll"]
        case ["poll", dict(polled)]:
            found = {str(key): records for key, records in polled.items()}
            if len(found) < len(polled):
                raise BadHistory(f"event {index}: a poll has two keys with the same name")
            return ["poll", found]
        case [str(name), *_] if name not in vocabulary.MICRO_OPERATIONS:
            return [name]
        case _:
            raise BadHistory(f"event {index}: {given!r} is neither a send nor a poll")


def _rebalances(log: Any) -> Iterator[list[Any]]:
    """Yield the rebalances that happened during an operation, as far as they name partitions."""
    for change in log or ():
        if not isinstance(change, dict) or not isinstance(change.get("keys") or [], list):
            raise BadHistory(f"{change!r} is not an entry of a rebalance log")
        keys = [str(key) for key in change.get("keys") or ()]
        if change.get("type") == "assigned":
            yield ["assigned", GROUP, None, dict.fromkeys(keys)]
        else:
            yield ["lost" if change.get("type") == "lost" else "revoked", GROUP, None, keys]


def _name(error: Any) -> Any:
    """Return the name of an error: errors are words, or vectors that begin with one."""
    return error[0] if isinstance(error, list) and error else error


def _as_json(value: Any) -> Any:
    """Convert what the nemesis reports to values that JSON can hold."""
    if isinstance(value, dict):
        return {str(key): _as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_json(inner) for inner in value]
    return value
