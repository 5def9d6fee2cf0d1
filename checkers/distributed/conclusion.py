"""Concludes a distributed judgement from what the passes have returned."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from checkers import counts, facts, overview, producers, table_builder
from checkers.columns import Columns
from checkers.counts import Counts, Outcomes
from checkers.distributed import slice_task, uses
from checkers.distributed.chunk_tasks import Prepared, Scanned
from checkers.distributed.slice_task import Judged
from checkers.distributed.uses import Uses
from checkers.kernels import history_kernels
from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.history_kernels import Kernel
from checkers.kernels.key import Report
from checkers.overview import Overview, Repeated, Whole
from checkers.tables import Tables


@dataclass(frozen=True, kw_only=True)
class Passes:
    """What the chunks and the slices of a history have returned."""

    prepared: Sequence[Prepared]
    scanned: Sequence[Scanned]
    judged: Sequence[Judged]
    uses: Uses
    names: Sequence[str]
    """The partitions, in the order in which the history names them."""
    nemesis: Columns
    """The events of the nemesis."""
    healed_ns: int | None
    """When the last fault was healed, 0 without any; ``None`` if one was not."""
    torn: str | None
    doubts: tuple[str, ...]

    @cached_property
    def reports(self) -> Mapping[str, Report]:
        """The reports of all partitions."""
        by_name = {name: report for each in self.judged for name, report in each.reports.items()}
        return {name: by_name[name] for name in self.names if name in by_name}

    @cached_property
    def found(self) -> Sequence[Found]:
        """The findings about all partitions."""
        return [f for report in self.reports.values() for f in report.found]

    @cached_property
    def proven(self) -> frozenset[int]:
        """The operations in doubt that happened."""
        return frozenset[int]().union(*(each.proven for each in self.judged))

    @cached_property
    def caught_up(self) -> frozenset[str]:
        """The partitions that were read to their ends."""
        return _union(each.caught_up for each in self.judged)


class _Times:
    """When the operations of findings began, and when they ended, by the events that end them."""

    def __init__(self, spans: Mapping[int, tuple[int, int]]) -> None:
        self._spans = spans

    def span(self, ops: Sequence[int]) -> tuple[int, int]:
        """Return from when to when these operations lasted."""
        begins, ends = zip(*(self._spans[op] for op in ops), strict=True)
        return min(begins), max(ends)


def concluded(
    passes: Passes, kernels: Callable[[History], Mapping[str, Kernel]], parts: Sequence[bytes]
) -> Whole:
    """Return what was found in a whole history.

    ``parts`` has the operations that findings need whole, packed, and ``kernels`` are those of a
    history, given the tables of these operations.
    """
    columns = Columns(slice_task.events_of(parts))
    sent = producers.sends(columns, table_builder.operations_of(columns))[0]
    tried = uses.transactions(sent)
    found = table_builder.build(columns, passes.proven)
    related = replace(
        found,
        finished=frozenset(n for n, name in enumerate(found.keys) if name in passes.caught_up),
        inits=passes.uses.inits,
        attempts=passes.uses.attempts,
        healed_ns=passes.healed_ns,
    )
    whole = history_kernels.judge(related, passes.found, kernels(related))
    view = _overview(passes, _counts(passes, tried, related), _times(passes, related, whole.found))
    return Whole(passes.reports, whole, view, any(one.subscribes for one in passes.scanned))


def _counts(passes: Passes, tried: tuple[int, int], related: Tables) -> Counts:
    """Return the counts of a history. Transactions are counted by chunks, and those are left out
    whose values are all repeated; ``tried`` and ``related`` have these."""
    after, known = counts.of(related), passes.uses
    return counts.total(each.counts for each in passes.judged)._replace(
        attempts_after_healing=known.after_healing,
        transactions=known.transactions - tried[0] + after.transactions,
        transactions_in_doubt=known.in_doubt - tried[1] + after.transactions_in_doubt,
    )


def _times(passes: Passes, related: Tables, found: Iterable[Found]) -> _Times:
    nemesis = passes.nemesis
    times = zip(nemesis.index.tolist(), nemesis.time_ns.tolist(), strict=True)
    spans = {event: (time_ns, time_ns) for event, time_ns in times}
    for each in passes.judged:
        spans |= each.spans
    for init in passes.uses.inits:
        spans[init.op] = init.start_ns, init.end_ns
    attempts = passes.uses.attempts
    begins, ends = attempts.start_ns.tolist(), attempts.end_ns.tolist()
    spans |= dict(zip(attempts.op.tolist(), zip(begins, ends, strict=True), strict=True))
    missing = {op for f in found for op in f.ops} - spans.keys()
    return _Times(spans | slice_task.spans(related, missing))


def _overview(passes: Passes, counted: Counts, times: overview.Times) -> Overview:
    judged, nemesis = passes.judged, passes.nemesis
    ignored, unknown = Counter[str](), Counter[str]()
    for one in passes.scanned:
        ignored.update(one.ignored)
    for each in passes.prepared:
        unknown.update(each.unknown)
    outcomes = zip(*(one.outcomes for one in passes.scanned), strict=True)
    return Overview(
        outcomes=Outcomes(*map(sum, outcomes)),
        counts=counted,
        times=times,
        record_keys=_union(each.record_keys for each in judged),
        caught_up=passes.caught_up,
        tried=_union(each.tried for each in judged),
        groups=judged[0].groups[0],
        groups_with_members=judged[0].groups[1],
        faults=facts.faults(nemesis),
        crashes=facts.crashes(nemesis),
        silences=facts.silences(nemesis),
        recovered=facts.recovered(nemesis),
        repeated=_repeated(passes),
        ignored=ignored,
        unknown=unknown,
        torn=passes.torn,
        doubts=passes.doubts,
    )


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _repeated(passes: Passes) -> tuple[Repeated, ...]:
    """Return the repeated values by partition, as the history names these, and value."""
    number = {name: place for place, name in enumerate(passes.names)}
    found = [repeated for each in passes.judged for repeated in each.repeated]
    return tuple(sorted(found, key=lambda each: (number[each.key], each.value)))
