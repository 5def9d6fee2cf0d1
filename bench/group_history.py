"""An oracle for consumer groups: which answers a correct Kafka could have given in a history.

The rules are the oracle of :mod:`bench.group_corruptions`. They do not use the checkers' code, so
that each can be tested against the other:

1. The coordinator of a group answers with the last committed offset. Commits are ordered by real
   time if one ended before the other began. A commit in doubt may take effect at any later time.
2. A former coordinator answers from memory until it learns of its successor. It only knows what was
   committed when the leader of the group's partition changed. The brokers' own logs show when that
   was; without logs it may have been at any time while a fault was active.
3. A former coordinator has forgotten everything once it restarts, and knows its successor once it
   leads again, and at the latest ``HEARS_S`` after the last fault.
4. A member begins at the committed offset, or at the start of the log if nothing is committed.
5. A group whose clients commit automatically commits offsets that no operation states. Once an
   offset was found, one is committed.
"""

import itertools
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from model.op import NEMESIS

NEVER = 1 << 60
"""The place of an event that never came."""
HEARS_S = 15.0
"""How long after the last fault a former coordinator may not know of its successor."""
LOG_S = 0.5
"""How precisely the times of brokers' logs can be compared with those of a history."""

Partition = tuple[str, str]
"""A group and a partition."""


class Operation(NamedTuple):
    """An operation of a client, with the places of its events in the history."""

    process: int
    f: str
    begin: int
    end: int
    """``NEVER`` if it has no completion."""
    type: str
    asked: Any
    completion: Any
    """The micro-operations of the completion; those of the invocation if there is none."""


class Commit(NamedTuple):
    """A commit of an offset that may have taken effect."""

    offset: int | None
    """``None``: the offset was deleted."""
    begin: int
    end: int
    """``NEVER`` while it is in doubt."""
    operation: Operation
    is_any: bool = False
    """True if the offset is unknown."""

    @property
    def is_certain(self) -> bool:
        return self.end < NEVER


class Answer(NamedTuple):
    """A partition in the answer to ``committed``."""

    operation: Operation
    group: str
    key: str
    place: Any
    """An offset, an offset with metadata, or ``None``."""

    @property
    def offset(self) -> int | None:
        return offset_of(self.place)


class Given(NamedTuple):
    """A partition that was assigned to a member."""

    operation: Operation
    group: str
    generation: int | None
    key: str
    position: int | None
    micro_op: int
    """The position of the assignment among the micro-operations of its operation."""
    since: int
    """The event at which the member's previous poll began."""


class Change(NamedTuple):
    """A change of the leader of a partition of ``__consumer_offsets``."""

    time_ns: int
    former: int
    """The broker that was the leader until then."""


@dataclass
class Brokers:
    """What the brokers' logs say about leaders."""

    changes: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))
    """By topic and partition, in the order of leader epochs."""
    fresh: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By broker: times at which it started, or became the leader of some partition of offsets."""


def offset_of(place: Any) -> int | None:
    """Return the offset of a committed place, without its metadata."""
    offset: int | None = place[0] if isinstance(place, list) else place
    return offset


def read_events(path: Path) -> list[dict[str, Any]]:
    """Read the events of a ``history.jsonl`` as plain objects that may be changed."""
    with path.open("rb") as lines:
        return [msgspec.json.decode(line) for line in lines if line.strip()]


_LED = re.compile(r"(?P<tp>\S+): leader (?P<leader>\d+), epoch (?P<epoch>\d+), ISR")
_FRESH = re.compile(r"broker \d+ started on|__consumer_offsets-\d+ is read")
_BEGAN = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
"""When every simulated run begins, by its own clocks."""


def read_logs(folder: Path) -> Brokers:
    """Read the changes of leaders of a simulated run from the logs of its brokers."""
    led: dict[str, dict[int, tuple[int, int]]] = defaultdict(dict)
    brokers = Brokers()
    for path in sorted(folder.glob("broker-*/log.txt")):
        number = int(path.parent.name.rpartition("-")[2])
        for line in path.read_text(errors="replace").splitlines():
            when, _, said = line.partition(" INFO ")
            if not said:
                continue
            if match := _LED.search(said):
                epoch = int(match["epoch"])
                led[match["tp"]].setdefault(epoch, (_ns(when), int(match["leader"])))
            elif _FRESH.search(said):
                brokers.fresh[number].append(_ns(when))
    for tp, terms in led.items():
        ordered = [terms[epoch] for epoch in sorted(terms)]
        for (_, former), (time_ns, leader) in itertools.pairwise(ordered):
            if leader != former:
                brokers.changes[tp].append(Change(time_ns, former))
    return brokers


def _ns(when: str) -> int:
    moment = datetime.strptime(when.strip(), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return int((moment - _BEGAN).total_seconds() * 1e9)


def coordinating_partition(group: str, partitions: int) -> str:
    """Return the partition of ``__consumer_offsets`` whose leader coordinates a group.

    It is Java's string hash of the group's name, modulo the number of partitions.
    """
    number = 0
    for character in group:
        number = (31 * number + ord(character)) % (1 << 32)
    signed = number - (1 << 32) if number >= 1 << 31 else number
    return f"__consumer_offsets-{abs(signed) % partitions}"


class GroupHistory:
    """What the operations of a history say about groups."""

    def __init__(
        self,
        events: Sequence[dict[str, Any]],
        brokers: Brokers | None = None,
        offsets_partitions: int = 4,
    ) -> None:
        self.events = events
        self.times = [event["time_ns"] for event in events]
        self.operations = list(_operations(events))
        self.faults = list(_faults(events))
        clocks = any(event["f"].startswith("clock-") for event in events)
        self.brokers = None if clocks else brokers
        self._offsets_partitions = offsets_partitions
        self.modes: dict[str, set[str]] = defaultdict(set)
        self.instances: dict[int, str | None] = {}
        self.members: dict[str, set[int]] = defaultdict(set)
        self.commits: dict[Partition, list[Commit]] = defaultdict(list)
        self.answers: list[Answer] = []
        self.given: list[Given] = []
        self._reach: dict[Partition, list[tuple[int, int]]] = defaultdict(list)
        """By group and partition: events that delivered records, and the last offset by then."""
        self.read: dict[str, dict[int, int]] = defaultdict(dict)
        """By partition: the value at each offset that a client read."""
        self.acked: dict[str, set[int]] = defaultdict(set)
        """By partition: the offsets that were acknowledged."""
        self._open: dict[Any, list[tuple[Partition, int]]] = defaultdict(list)
        """By producer: commits in acknowledged transactions that may not have taken effect yet."""
        self._has_id: set[int] = set()
        self._follow()
        for key, offsets in self.acked.items():
            offsets &= self.read[key].keys()
        for answer in self.answers:
            if self.is_automatic(answer.group) and answer.offset is not None:
                some = Commit(None, 0, answer.operation.end, answer.operation, is_any=True)
                self.commits[answer.group, answer.key].append(some)

    def is_automatic(self, group: str) -> bool:
        """Return whether clients of this group commit automatically."""
        return "auto" in self.modes[group]

    def firm(self, key: str, begin: int, end: int) -> list[int]:
        """Return the offsets in ``begin … end - 1`` of records that were acknowledged and read."""
        return sorted(offset for offset in self.acked[key] if begin <= offset < end)

    def reach(self, of: Partition, end: int) -> int:
        """Return the last offset that the group's members had received by an event; -1 for none."""
        known = self._reach[of]
        count = bisect_right(known, (end, NEVER))
        return known[count - 1][1] if count else -1

    def possible(self, of: Partition, offset: int | None, begin: int, end: int) -> bool:
        """Rule 1: may the current coordinator return this offset between these events?"""
        commits = [commit for commit in self.commits[of] if commit.begin < end]
        latest = max((c.begin for c in commits if c.end < begin), default=-1)
        if offset is None and latest < 0:
            return True
        return any(
            c.end > latest and (offset is not None if c.is_any else c.offset == offset)
            for c in commits
        )

    def possibly_stale(self, of: Partition, offset: int | None, begin: int) -> bool:
        """Rules 2 and 3: may a former coordinator have remembered this offset at this event?"""
        now_ns = self.times[begin]
        return any(
            self.possible(of, offset, self.place(from_ns), self.place(to_ns))
            and self._may_not_have_heard(former, to_ns, now_ns)
            for from_ns, to_ns, former in self._changes_before(of[0], now_ns)
        )

    def place(self, time_ns: float) -> int:
        """Return the first event at or after a time."""
        return bisect_left(self.times, time_ns)

    def _changes_before(self, group: str, now_ns: int) -> Iterator[tuple[float, float, int | None]]:
        """Yield when (from, to) a coordinator may have been replaced, and the former broker."""
        if self.brokers is None:
            for from_ns, to_ns in self.faults:
                yield from_ns - LOG_S * 1e9, min(to_ns + HEARS_S * 1e9, now_ns), None
            return
        tp = coordinating_partition(group, self._offsets_partitions)
        for change in self.brokers.changes[tp]:
            if change.time_ns <= now_ns + LOG_S * 1e9:
                slack = LOG_S * 1e9
                yield change.time_ns - slack, change.time_ns + slack, change.former

    def _may_not_have_heard(self, former: int | None, since_ns: float, now_ns: int) -> bool:
        fresh = self.brokers.fresh[former] if self.brokers and former is not None else []
        if any(since_ns < fresh_ns < now_ns for fresh_ns in fresh):
            return False
        covered_ns = since_ns + HEARS_S * 1e9
        for from_ns, to_ns in self.faults:
            if from_ns <= covered_ns:
                covered_ns = max(covered_ns, to_ns + HEARS_S * 1e9)
        return covered_ns >= now_ns

    def _follow(self) -> None:
        since: dict[int, int] = {}
        owners: dict[int, dict[str, str]] = defaultdict(dict)
        for operation in self.operations:
            previous = since.get(operation.process, operation.begin)
            if any(micro_op[:1] == ["poll"] for micro_op in _lists(operation.asked)):
                since[operation.process] = operation.begin
            for place, micro_op in enumerate(_lists(operation.completion)):
                match micro_op:
                    case ["subscribe", group, _, *options]:
                        how = options[0] if options else {}
                        self.modes[group].add(how.get("commit", "sync"))
                        self.instances[operation.process] = how.get("instance")
                        self.members[group].add(operation.process)
                    case ["init", *_] if operation.type == "ok":
                        self._has_id.add(operation.process)
                    case ["commit" | "commit-plainly", group, places, *_]:
                        self._committed(operation, group, places, previous, owners)
                    case ["committed", group, places] if operation.type == "ok":
                        self.answers += [
                            Answer(operation, group, key, found) for key, found in places.items()
                        ]
                    case ["assigned", group, generation, places]:
                        owners[operation.process] |= dict.fromkeys(places, group)
                        self.given += [
                            Given(operation, group, generation, key, position, place, previous)
                            for key, position in places.items()
                        ]
                    case ["poll", records]:
                        for key, pairs in records.items():
                            self.read[key] |= {o: v for o, v in pairs if o is not None}
                            for group in self._groups_of(operation.process):
                                self._come(operation, (group, key), pairs)
                    case ["send", key, [offset, _]] if operation.type == "ok":
                        self.acked[key].add(offset)
                    case _:
                        pass
            self._listener_in_doubt(operation, owners)

    def _groups_of(self, process: int) -> list[str]:
        return [group for group, members in self.members.items() if process in members]

    def _come(self, operation: Operation, of: Partition, pairs: list[list[Any]]) -> None:
        last = self._reach[of][-1][1] if self._reach[of] else -1
        offsets = [offset for offset, _ in pairs if offset is not None]
        self._reach[of].append((operation.end, max(last, *offsets, -1)))

    def _committed(
        self,
        operation: Operation,
        group: str,
        places: dict[str, Any] | None,
        previous: int,
        owners: dict[int, dict[str, str]],
    ) -> None:
        if operation.type == "fail":
            return
        in_poll = operation.f == "poll"
        is_acked = operation.type == "ok" and places is not None
        for key in places if places is not None else owners[operation.process]:
            place = None if places is None else places[key]
            is_certain = is_acked and operation.f != "txn"
            if is_acked and operation.f == "txn":
                self._ends_with(operation, (group, key))
            self.commits[group, key].append(
                Commit(
                    offset_of(place),
                    previous if in_poll else operation.begin,
                    operation.end if is_certain else NEVER,
                    operation,
                    is_any=places is None,
                )
            )

    def _ends_with(self, operation: Operation, of: Partition) -> None:
        """Give the earlier commits of a producer's transactions their end.

        A commit in a transaction takes effect before the next transaction of the same producer is
        acknowledged. A process has one producer, or one for each partition.
        """
        process = operation.process
        producer = process if process in self._has_id else (process, of[1])
        earlier = self._open[producer]
        for partition, place in earlier:
            commit = self.commits[partition][place]
            if commit.operation is not operation:
                self.commits[partition][place] = commit._replace(end=operation.end)
        self._open[producer] = [
            each for each in earlier if self.commits[each[0]][each[1]].operation is operation
        ]
        self._open[producer].append((of, len(self.commits[of])))

    def _listener_in_doubt(self, operation: Operation, owners: dict[int, dict[str, str]]) -> None:
        """Record that a listener may have committed in an operation with unknown outcome."""
        if operation.type == "info" and operation.f != "crash":
            for key, group in owners[operation.process].items():
                if "listener" in self.modes[group]:
                    unknown = Commit(None, operation.begin, NEVER, operation, is_any=True)
                    self.commits[group, key].append(unknown)


def _lists(value: Any) -> list[list[Any]]:
    """Return the micro-operations that are lists."""
    if not isinstance(value, list):
        return []
    return [each for each in value if isinstance(each, list)]


def _operations(events: Sequence[dict[str, Any]]) -> Iterator[Operation]:
    """Yield the operations in the order of their last events."""
    begun: dict[int, int] = {}
    unfinished = NEVER
    for place, event in enumerate(events):
        process = event["process"]
        if process == NEMESIS:
            continue
        if event["type"] == "invoke":
            begun[process] = place
            continue
        begin = begun.pop(process)
        asked = events[begin].get("value")
        value = event.get("value")
        yield Operation(
            process,
            event["f"],
            begin,
            place,
            event["type"],
            asked,
            asked if value is None else value,
        )
    for process, begin in begun.items():
        event = events[begin]
        asked = event.get("value")
        yield Operation(process, event["f"], begin, unfinished, "info", asked, asked)


def _faults(events: Iterable[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each fault."""
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    for event in events:
        value = event.get("value")
        if event["process"] != NEMESIS or not isinstance(value, dict) or "id" not in value:
            continue
        if value.get("phase") == "heal":
            ended[value["id"]] = event["time_ns"]
        else:
            begun.setdefault(value["id"], event["time_ns"])
    for number, from_ns in sorted(begun.items(), key=lambda each: each[1]):
        yield from_ns, ended.get(number, 1 << 62)
