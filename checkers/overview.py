"""What a verdict needs to know of a whole history besides what checkers found in it.

It has counts, facts and names of partitions, but no row of any operation, so that it is as small
for a large history as for a small one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

from checkers import counts, threads
from checkers.counts import Counts, Outcomes
from checkers.facts import Crash, Fault, Silence
from checkers.kernels import history_kernels
from checkers.kernels.key import Report
from checkers.tables import Tables


class Times(Protocol):
    """When events happened."""

    def span(self, ops: Sequence[int]) -> tuple[int, int]:
        """Return from when to when the operations lasted that these events complete, in ns."""
        ...


class Repeated(NamedTuple):
    """A value that more than one operation may have written to a partition."""

    key: str
    value: int
    ops: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Overview:
    """A whole history, without its rows."""

    outcomes: Outcomes
    counts: Counts
    times: Times
    record_keys: frozenset[str]
    """The partitions that a client tried to write or to read, without those of topics that were
    deleted, or may have been."""
    caught_up: frozenset[str]
    """The partitions that were read to their ends after everything was acknowledged."""
    tried: frozenset[str]
    """The partitions that a client tried to read to their ends."""
    groups: int
    """Number of consumer groups."""
    groups_with_members: int
    faults: tuple[Fault, ...]
    crashes: tuple[Crash, ...]
    silences: tuple[Silence, ...]
    recovered: bool | None
    """As in :class:`~checkers.tables.Tables`, like the fields below."""
    repeated: tuple[Repeated, ...]
    ignored: Mapping[str, int]
    unknown: Mapping[str, int]
    torn: str | None
    doubts: tuple[str, ...]
    judged: Mapping[str, int] = field(default_factory=dict)
    """How much each checker of ZooKeeper had to judge."""


def of(tables: Tables) -> Overview:
    """Return the overview of a history whose tables are in memory."""
    return Overview(
        outcomes=counts.outcomes(tables.operations),
        counts=counts.of(tables),
        times=tables,
        record_keys=record_keys(tables),
        caught_up=frozenset(tables.keys[key] for key in tables.caught_up()),
        tried=frozenset(tables.keys[key] for key, *_ in tables.catch_ups),
        groups=len(tables.groups),
        groups_with_members=sum(bool(group.members) for group in tables.groups),
        faults=tables.faults,
        crashes=tables.crashes,
        silences=tables.silences,
        recovered=tables.recovered,
        repeated=repeated(tables),
        ignored=tables.ignored,
        unknown=tables.unknown,
        torn=tables.torn,
        doubts=tables.doubts,
    )


class Whole(NamedTuple):
    """What checkers have found in a whole history, and what a verdict needs besides."""

    reports: Mapping[str, Report]
    """By partition."""
    found: history_kernels.Report
    overview: Overview
    subscribes: bool
    """Whether any client asked for a subscription."""


def concluded(tables: Tables, reports: Mapping[str, Report]) -> Whole:
    """Return what was found in a history whose tables are in memory, given the reports of its
    partitions."""
    found = [f for report in reports.values() for f in report.found]
    mapped = partial(threads.mapped, threads=threads.count(len(tables.sends) + len(tables.polls)))
    whole = history_kernels.judge(tables, found, mapped=mapped)
    return Whole(reports, whole, of(tables), counts.subscribes(tables.operations))


def record_keys(tables: Tables) -> frozenset[str]:
    """Return the partitions that a client tried to write or to read, by name."""
    return frozenset(tables.keys[key] for key in tables.record_keys if key not in tables.deleted)


def repeated(tables: Tables) -> tuple[Repeated, ...]:
    """Return the values that are left out, since they are not unique in their partition."""
    return tuple(Repeated(tables.keys[key], value, ops) for key, value, ops in tables.repeated)
