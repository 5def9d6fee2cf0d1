"""Reads a history file into one Arrow table: nested events become flat typed columns.

``history.parquet`` is this table. An event's ``value`` is a list of micro-operations with the
fields ``op, key, offset, value, records, name``, where ``key`` names a partition.

- A ``catch-up`` holds the position in ``offset`` and the high watermark in ``value``.
- Micro-operations of consumer groups (``commit``, ``commit-plainly``, ``committed``, ``assigned``,
  ``revoked``, ``lost``) hold the group in ``name``, the generation in ``value``, and a record per
  partition with its offset, whose ``value`` is the metadata of a commit.
- ``watermarks`` hold a record per log end, whose ``value`` is an index into ``WATERMARKS``.
- ``delete-records`` hold a record for the requested offset (``DELETED``), and one for the log start
  that the broker returned.

Other values (a fault's description), and what a process does once (``subscribe``, ``init``,
``leave``), are JSON in ``detail``.
"""

import gc
import pickle
import subprocess
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Never

import msgspec
import pyarrow as pa

from checkers import left_out, pieces, vocabulary
from checkers.kernels.rows import NO_METADATA, UNKNOWN
from checkers.pieces import SCHEMA as SCHEMA
from checkers.pieces import TYPES as TYPES
from model import json_fields
from model.history import BadHistory
from model.op import NEMESIS

SEND, POLL, ASSIGN, CATCH_UP = "send", "poll", "assign", "catch-up"
ABORT, DELAY = "abort", "delay"
"""Further micro-operations of a transaction; a delay has its milliseconds in ``offset``."""
FREEZE = "freeze"
COMMIT, COMMITTED, WATERMARK = "commit", "committed", "watermarks"
COMMIT_PLAINLY = "commit-plainly"
"""A commit of offsets that is made during a transaction, but not as a part of it."""
REBALANCES = ("assigned", "revoked", "lost")
"""How a member's partitions change: they are assigned, revoked, or already lost."""
WATERMARKS = ("start", "high", "stable")
DELETE_RECORDS = "delete-records"
DELETED = len(WATERMARKS)
"""Stands for the offset before which a client asked for the deletion of all records."""
BEYOND = (1 << 63) - 1
"""Stands for a high watermark that is not known: no record is at or above it."""
DELETE_TOPIC = "delete-topic"
CREATE_COMPACTED = "create-compacted"
"""Creates a compacted topic, in which only the last record of each record key need stay."""
ONCE = ("subscribe", "init", "leave")
"""What a process does once, kept whole as JSON."""

_TYPE_CODES = {name: code for code, name in enumerate(TYPES)}
_SEND = 0
"""The code of ``send`` among the names of micro-operations."""

CHUNK_BYTES = 256 << 10
"""Number of bytes that are decoded at once: the objects of these lines still fit into a core's
cache."""
PIECE_EVENTS = 1 << 15
"""Number of events that are packed into narrow columns together."""
SPLIT_BYTES = 64 << 20
"""Size from which on two processes read a file."""

Progress = Callable[[float], None]  # gets how much is done, from 0 to 1


class Event(msgspec.Struct, gc=False):
    """An event as a file has it, before its value is interpreted."""

    index: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    time_ns: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    process: Annotated[int, msgspec.Meta(ge=NEMESIS, le=(1 << 31) - 1)]
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    value: Any = msgspec.UNSET
    error: str | msgspec.UnsetType | None = msgspec.UNSET


FIELDS = frozenset(Event.__struct_fields__)
"""The fields that an event of a file may have; other fields are ignored, and reported."""

_EVENTS = msgspec.json.Decoder(list[Event])
_EVENT = msgspec.json.Decoder(Event)
_REQUIRED = 5  # fields of every event
_SHAPE = (TypeError, ValueError, LookupError, OverflowError, AttributeError, RecursionError)
"""What is raised for a value that does not have the shape of micro-operations."""
_UNDECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What is raised for a text that is not an event in JSON."""
_UNREADABLE = (
    *_UNDECODED,
    pa.ArrowException,
    EOFError,
    pickle.PickleError,
    *_SHAPE,
)


class _Codes(dict[str, int]):
    """Codes for names, in the order of their first appearance."""

    def __missing__(self, name: object) -> int:
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is not a name")
        code = self[name] = len(self)
        return code


def _column() -> "array[int]":
    return array("q")  # accepts integers of 64 bits, but also True and False


class _Columns:
    """The columns of a history while it is read, one event after another."""

    def __init__(self) -> None:
        self.names, self.errors, self.ops, self.keys = _Codes(), _Codes(), _Codes(), _Codes()
        self.groups = _Codes()
        self.fields = 0  # names in JSON objects, each counted once for its object
        self.unknown: Counter[str] = Counter()  # fields that are ignored
        assert self.ops[SEND] == _SEND, "the first name has the first number"
        self._begin()

    def _begin(self) -> None:
        """Begin a piece, whose rows count from 0."""
        self.index, self.time_ns, self.process = _column(), _column(), _column()
        self.type, self.f, self.error = _column(), _column(), _column()
        self.named, self.op_group = _column(), _column()  # rows with a group, the groups
        self.details: dict[int, str] = {}
        self.op_end, self.op, self.op_key = _column(), _column(), _column()
        self.op_offset, self.op_value, self.op_records_end = _column(), _column(), _column()
        self.record_key, self.record_offset, self.record_value = _column(), _column(), _column()
        self.no_value = _column()  # rows of micro-operations without a number

    def add(self, events: list[Event]) -> None:
        """Add events. Raises one of ``_SHAPE`` midway when a value has another shape."""
        self.index.extend([event.index for event in events])
        self.time_ns.extend([event.time_ns for event in events])
        self.process.extend([event.process for event in events])
        self.type.extend([_TYPE_CODES[event.type] for event in events])
        names, errors = self.names, self.errors
        self.f.extend([names[event.f] for event in events])
        self.error.extend([errors[e.error] if type(e.error) is str else -1 for e in events])
        self.fields += sum(
            _REQUIRED + (e.value is not msgspec.UNSET) + (e.error is not msgspec.UNSET)
            for e in events
        )
        # Two thirds of judging a history inline is spent in this loop: hence the local names.
        keys, op, op_key, op_records_end = self.keys, self.op, self.op_key, self.op_records_end
        op_offset, op_value, op_end = self.op_offset, self.op_value, self.op_end
        known = vocabulary.OPERATIONS
        for event in events:
            value = event.value
            if type(value) is list and event.process != NEMESIS and event.f in known:
                if event.f in ONCE and value and type(value[0]) is list:
                    self._add_detail(value)
                    value = ()
                for micro_op in value:
                    if micro_op[0] == SEND:
                        _, key, sent = micro_op
                        if type(sent) is list:
                            offset, sent = sent
                            op_offset.append(UNKNOWN if offset is None else offset)
                            if type(offset) is bool:
                                raise TypeError
                        else:
                            op_offset.append(UNKNOWN)
                        if type(sent) is not int:
                            _refuse("the value of a record must be a whole number")
                        op.append(_SEND)
                        op_key.append(keys[key])
                        op_value.append(sent)
                        op_records_end.append(len(self.record_key))
                    else:
                        self._add(micro_op, event.f)
            elif value is not None and value is not msgspec.UNSET:
                if event.process == NEMESIS:
                    self._add_detail(value)
                elif event.f in vocabulary.WITH_MICRO_OPERATIONS:
                    _refuse("a value must be a list of micro-operations")
                else:
                    self.fields += _names(value)
            op_end.append(len(op))

    def _add_detail(self, value: Any) -> None:
        """Keep a value whole, as JSON, for the event that is added next."""
        self.details[len(self.op_end)] = msgspec.json.encode(value).decode()
        self.fields += _names(value)

    def _add(self, micro_op: Any, f: str) -> None:
        if micro_op[0] == POLL:
            if len(micro_op) > 1 and micro_op[1] is not None:
                _, polled = micro_op
                self.fields += len(polled)
                self._add_records(polled)
            self._add_other(POLL)
            self.op_records_end.append(len(self.record_key))
            return
        self.fields += _names(micro_op)
        if type(micro_op) is str:
            if f not in vocabulary.NAMES_KEYS:
                _refuse(f"only {' and '.join(vocabulary.NAMES_KEYS)} have keys without values")
            self._add_other(ASSIGN, micro_op)
        elif micro_op[0] not in vocabulary.MICRO_OPERATIONS:
            self._add_other(micro_op[0])
        elif not vocabulary.fits(micro_op):
            raise TypeError
        elif micro_op[0] in (COMMIT, COMMIT_PLAINLY, COMMITTED):
            self._add_places(micro_op[0], micro_op[1], None, micro_op[2])
        elif micro_op[0] in REBALANCES:
            self._add_places(*micro_op)
        elif micro_op[0] == WATERMARK:
            self._add_watermarks(*micro_op)
        elif micro_op[0] == DELETE_RECORDS:
            self._add_deletion(*micro_op)
        else:
            self._add_other(*micro_op)
        self.op_records_end.append(len(self.record_key))

    def _add_records(self, polled: dict[str, list[list[Any]]]) -> None:
        for key, records in polled.items():
            if type(records) is not list:
                raise TypeError
            offsets = [UNKNOWN if offset is None else offset for offset, _ in records]
            values = [value for _, value in records]
            # In a column of offsets, a negative one looks like one that was not stated.
            if min(offsets, default=0) < 0 and any(o is not None and o < 0 for o, _ in records):
                _refuse("the offset of a record must not be negative")
            if bool in map(type, values) or bool in map(type, offsets):
                _refuse("true and false are not numbers")
            self.record_key.extend([self.keys[key]] * len(records))
            self.record_offset.extend(offsets)
            self.record_value.extend(values)

    def _add_places(
        self,
        kind: str,
        group: str,
        generation: int | None,
        places: dict[str, Any] | list[str] | None,
    ) -> None:
        """Add one record per partition of a group, with its offset and its metadata where they are
        given."""
        offsets = places if isinstance(places, dict) else dict.fromkeys(places or ())
        for key, offset in offsets.items():
            self._add_place(key, *(offset if type(offset) is list else (offset, NO_METADATA)))
        self.named.append(len(self.op))
        self.op_group.append(self.groups[group])
        self._add_other(kind, None, None, generation)

    def _add_watermarks(self, kind: str, key: str, told: dict[str, Any] | None = None) -> None:
        self.unknown.update(name for name in told or () if name not in WATERMARKS)
        for place, name in enumerate(WATERMARKS):
            if told and told.get(name) is not None:
                self._add_place(key, told[name], place)
        self._add_other(kind, key)

    def _add_deletion(self, kind: str, key: str, asked: int, start: int | None = None) -> None:
        if asked < 0:  # Kafka's DeleteRecords: all below the high watermark, which the answer has
            asked = BEYOND if start is None else start
        self._add_place(key, asked, DELETED)
        if start is not None:
            self._add_place(key, start, WATERMARKS.index("start"))
        self._add_other(kind, key)

    def _add_place(self, key: str, offset: int | None, value: int) -> None:
        self.record_key.append(self.keys[key])
        self.record_offset.append(UNKNOWN if offset is None else offset)
        self.record_value.append(value)

    def _add_other(
        self, kind: str, key: str | None = None, first: int | None = None, second: int | None = None
    ) -> None:
        """Add the columns of a micro-operation other than a send; of an unknown one, only its
        name."""
        if second is None:
            self.no_value.append(len(self.op))
        self.op.append(self.ops[kind])
        self.op_key.append(-1 if key is None else self.keys[key])
        self.op_offset.append(UNKNOWN if first is None else first)
        self.op_value.append(0 if second is None else second)

    def piece(self) -> pieces.Piece:
        """Return what was added since the last piece."""
        columns = {name: column for name, column in vars(self).items() if type(column) is array}
        piece = pieces.piece(columns, self.details)
        self._begin()
        return piece

    def known(self) -> dict[str, list[str]]:
        """Return all names so far, by their kind."""
        return {name: list(getattr(self, name)) for name in set(pieces.NAMED.values())}

    def finish(self, part: pieces.Part) -> pieces.Part:
        """Complete a part with the remaining events and with the names."""
        part.add(self.piece())
        part.names, part.unknown = self.known(), self.unknown
        return part


def _refuse(why: str) -> Never:
    raise vocabulary.Misfit(why)


def _names(value: Any) -> int:
    """Count the names in the JSON objects of a value."""
    inner = value.values() if type(value) is dict else value if type(value) is list else ()
    return (len(value) if type(value) is dict else 0) + sum(map(_names, inner))


def table(events: Iterable[Event]) -> pa.Table:
    """Return events as one table. Raises :class:`BadHistory` when a value does not have the shape
    of micro-operations."""
    columns = _Columns()
    for event in events:
        _add_one(columns, event)
    return _table(columns.finish(pieces.Part()))


def _add_one(columns: _Columns, event: Event) -> None:
    """Add one event. Raises :class:`BadHistory` with what is wrong in its value."""
    try:
        columns.add([event])
    except _SHAPE as error:
        value = event.value if isinstance(event.value, list) else []
        wrong = next((micro_op for micro_op in value if not _fits(event, micro_op)), event.value)
        raise BadHistory(f"event {event.index}: {vocabulary.misfit(wrong, error)}") from error


def _fits(event: Event, micro_op: Any) -> bool:
    try:
        _Columns().add([msgspec.structs.replace(event, value=[micro_op])])
    except _SHAPE:
        return False
    return True


def read_jsonl(path: Path, progress: Progress) -> pa.Table:
    """Return the events of a ``history.jsonl``.

    A torn last line (its writer was killed) is left out. Raises :class:`BadHistory` for any other
    line that is not an event. Another process reads half of a large file, since decoding is most of
    the work of judging.
    """
    size = path.stat().st_size
    try:
        if size < SPLIT_BYTES:
            return _table(_read_part(path, 0, size, progress))
        return _table(*_read_halves(path, size, progress))
    except _UNREADABLE:
        return _read_carefully(path)


def _table(*parts: pieces.Part, torn: str | None = None) -> pa.Table:
    fields = sum((part.unknown for part in parts), Counter[str]())
    return left_out.noted(pieces.table(*parts), torn, fields)


def _read_halves(path: Path, size: int, progress: Progress) -> tuple[pieces.Part, pieces.Part]:
    with path.open("rb") as file:
        file.seek(size // 2)
        file.readline()
        middle = file.tell()
    command = [sys.executable, "-m", "checkers.parse", str(path), str(middle), str(size)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other,
        ThreadPoolExecutor(1, "pieces") as thread,
    ):
        try:
            assert other.stdout is not None, "the pipe was requested"
            second = thread.submit(_received, other.stdout)
            return _read_part(path, 0, middle, progress), second.result()
        except BaseException:
            other.kill()
            raise


def _received(stream: IO[bytes]) -> pieces.Part:
    """Receive the part that another process reads, while it reads."""
    part = pieces.Part()
    while not part.names:
        sent: pieces.Piece | Counter[str] | pieces.Names = pickle.load(stream)
        if isinstance(sent, pieces.Piece):
            part.add(sent)
        elif isinstance(sent, Counter):
            part.unknown = sent
        else:
            part.names = sent
    return part


def _read_part(path: Path, begin: int, end: int, progress: Progress) -> pieces.Part:
    """Read the lines between two positions of a file, both at the beginning of a line."""
    columns, part = _Columns(), pieces.Part()
    for piece in _pieces(columns, path, (begin, end), progress):
        part.add(piece)
    return columns.finish(part)


def _pieces(
    columns: _Columns, path: Path, place: tuple[int, int], progress: Progress
) -> Iterator[pieces.Piece]:
    """Yield full pieces; the remaining events stay in the columns."""
    begin, end = place
    with path.open("rb") as file, _no_collections():
        file.seek(begin)
        while (left := end - file.tell()) > 0:
            lines = file.read(min(CHUNK_BYTES, left))
            if left > CHUNK_BYTES:
                lines += file.readline()
            _add_lines(columns, lines.strip())
            if len(columns.index) >= PIECE_EVENTS:
                yield columns.piece()
            progress((file.tell() - begin) / (end - begin))


def _add_lines(columns: _Columns, lines: bytes) -> None:
    """Add events, one per line. Raises one of ``_UNREADABLE`` where the lines are not certain to be
    that."""
    events = _EVENTS.decode(b"[" + lines.replace(b"\n", b",") + b"]")
    if not lines.count(b"\n") == lines.count(b"}\n{") == len(events) - 1:
        _refuse("a line must have exactly one event")
    before = columns.fields
    columns.add(events)
    # A decoder silently takes the last of two fields of one name. Fields are counted in the text,
    # where that is easy; where the counts differ, each line is checked.
    is_easy = not any(lines.count(rare) for rare in _RARE)
    if not (is_easy and lines.count(b'":') == columns.fields - before):
        for line in lines.split(b"\n"):
            _check_fields(columns, line)


_RARE = (b'\\":', b" :", b"\t:", b"\r:")
"""If a text has any of these, a quotation mark before a colon may not end the name of a field, or a
name may end otherwise."""


def _check_fields(columns: _Columns, line: bytes) -> None:
    """Count the fields of an event that are ignored. Raises :class:`ValueError` for a JSON object
    that has a field twice."""
    columns.unknown.update(name for name in json_fields.loads(line) if name not in FIELDS)


@contextmanager
def _no_collections() -> Iterator[None]:
    """Switch the cyclic garbage collector off: decoding makes millions of lists, none of them in a
    cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_carefully(path: Path) -> pa.Table:
    """Read line by line, for histories with blank or torn lines, and to say which line is wrong."""
    columns, part = _Columns(), pieces.Part()
    torn = None
    with path.open("rb") as lines, _no_collections():
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                event = _EVENT.decode(line)
                _check_fields(columns, line)
            except (*_UNDECODED, json_fields.Doubled) as error:
                is_doubled = isinstance(error, json_fields.Doubled)
                is_torn = not line.endswith(b"\n") and not is_doubled
                if is_torn and part.rows + len(columns.index):
                    torn = f"line {number} is torn and was left out"
                    break
                raise BadHistory(f"{path}, line {number}: {_said(error)}") from error
            try:
                _add_one(columns, event)
            except BadHistory as error:
                raise BadHistory(f"{path}, line {number}: {error}") from error
            if len(columns.index) >= PIECE_EVENTS:
                part.add(columns.piece())
    return _table(columns.finish(part), torn=torn)


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "the event is nested too deeply"
    return str(error).replace(" - at `$`", "")


def _main(path: str, begin: str, end: str) -> None:
    """Read a part of a history, and write its pieces and then its names to the standard output."""
    columns = _Columns()

    def send(what: pieces.Piece | Counter[str] | pieces.Names) -> None:
        pickle.dump(what, sys.stdout.buffer, protocol=pickle.HIGHEST_PROTOCOL)

    for piece in _pieces(columns, Path(path), (int(begin), int(end)), lambda done: None):
        send(piece)
    send(columns.piece())
    send(columns.unknown)
    send(columns.known())


if __name__ == "__main__":
    _main(*sys.argv[1:])
