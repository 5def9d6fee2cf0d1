"""Histories of Jepsen's Kafka workload (``jepsen.tests.kafka``), as Jepsen stores them in EDN.

Operations are the same as ours but for their keys, which are integers there. A transactional run
makes every operation a transaction, and calls those of one kind ``send`` or ``poll`` all the same:
a history with one ``txn`` has no other operations on records.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers import edn, parse
from checkers.parse import Event, Progress
from model.history import BadHistory
from model.op import NEMESIS

GROUP = "jepsen"
"""The name that the one consumer group gets."""

_RECORDS = ("send", "poll", "txn")
_KEYS = ("assign", "subscribe")
_TXN = re.compile(r":f\s+:txn\b")
_PROGRESS_EVERY = 1000


def read(path: Path, progress: Progress) -> pa.Table:
    """The events of a ``history.edn``, one map after the other or all in one vector. A torn last
    map is left out; raises :class:`BadHistory` for whatever else is no event of such a run."""
    try:
        text = path.read_text(encoding="utf-8")
        in_transactions = _TXN.search(text) is not None
        return parse.table(
            _event(op, place, in_transactions=in_transactions)
            for place, op in enumerate(_maps(text, progress))
        )
    except UnicodeDecodeError as error:
        raise BadHistory(f"{path} is no text: {error}") from error
    except edn.BadEdn as error:
        raise BadHistory(f"{path}, line {error.line}: {error}") from error
    except BadHistory as error:
        raise BadHistory(f"{path}: {error}") from error


def _maps(text: str, progress: Progress) -> Iterator[dict[str, Any]]:
    """The maps of a history. Where one is torn, those before it are all that there is."""
    found = 0
    try:
        for at, form in edn.forms(text):
            for op in form if isinstance(form, list) else [form]:
                if not isinstance(op, dict):
                    raise BadHistory(f"{op!r} is no operation")
                found += 1
                yield op
            if found % _PROGRESS_EVERY == 0:
                progress(at / len(text))
    except edn.Unfinished:
        if not found:
            raise
    progress(1.0)


def _event(op: dict[str, Any], place: int, *, in_transactions: bool) -> Event:
    """One of ours. Histories of old have no indices and times: the place of an event will do."""
    index, process, f = op.get("index", place), op.get("process"), str(op.get("f"))
    if op.get("type") not in parse.TYPES or process is None:
        raise BadHistory(f"event {index} has no type or process: it is no operation")
    is_client = isinstance(process, int)
    value, error = op.get("value"), op.get("error")
    if is_client:
        value = _value(f, op, index)
        f = "txn" if in_transactions and f in _RECORDS else f
    return Event(
        index=index,
        time_ns=op.get("time", place),
        process=process if is_client else NEMESIS,
        type=op["type"],
        f=f,
        value=value if is_client else _told(value),
        error=None if error is None else str(_name(error)),
    )


def _value(f: str, op: dict[str, Any], index: int) -> Any:
    value = op.get("value")
    if not isinstance(value, list):
        return None
    if f in _KEYS:
        return [str(key) for key in value]
    if f not in _RECORDS:
        return None  # what a client looked up about topics
    return [*_rebalances(op.get("rebalance-log")), *(_micro_op(given, index) for given in value)]


def _micro_op(given: Any, index: int) -> list[Any]:
    match given:
        case ["send", key, sent]:
            return ["send", str(key), sent]
        case ["poll"] | ["poll", None]:
            return ["poll"]
        case ["poll", dict(polled)]:
            return ["poll", {str(key): records for key, records in polled.items()}]
        case _:
            raise BadHistory(f"event {index}: {given!r} is neither a send nor a poll")


def _rebalances(log: Any) -> Iterator[list[Any]]:
    """What was told of partitions while an operation lasted, as far as it names keys."""
    for told in log or ():
        keys = [str(key) for key in told.get("keys") or ()]
        if told.get("type") == "assigned":
            yield ["assigned", GROUP, None, dict.fromkeys(keys)]
        else:
            yield ["lost" if told.get("type") == "lost" else "revoked", GROUP, None, keys]


def _name(error: Any) -> Any:
    """Errors are words, or vectors that begin with one."""
    return error[0] if isinstance(error, list) and error else error


def _told(value: Any) -> Any:
    """What the nemesis says, as far as JSON can say it."""
    if isinstance(value, dict):
        return {str(key): _told(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_told(inner) for inner in value]
    return value
