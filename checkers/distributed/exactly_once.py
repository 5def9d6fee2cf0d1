"""Exactly-once processing across slices: which transactions are looked up, and what they show."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from checkers.distributed import output_task
from checkers.distributed.conclusion import Passes
from checkers.distributed.output_task import Asked, Place, Records
from checkers.distributed.slicing import Happened, Slicing
from checkers.kernels import history_kernels, outputs
from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.outputs import Given, Input, Work
from checkers.kernels.rows import I64


class _Known(NamedTuple):
    """What slices have shown of a history."""

    suspects: frozenset[int] = frozenset()
    ops: frozenset[int] = frozenset()
    """The operations that have to be looked up."""
    inputs: Mapping[Place, Sequence[Input]] = {}
    unsure: frozenset[str] = frozenset()
    topics: Mapping[str, frozenset[str]] = {}
    """The topics of the outputs of each group."""
    shown: Mapping[str, frozenset[int]] = {}
    names: Sequence[str] = ()
    """All partitions of the history."""
    read: frozenset[str] = frozenset()
    """The partitions that were read to their ends."""

    def judge(self, history: History) -> list[Found]:
        """Return what the kernel finds in the whole history, given that of the operations that were
        looked up."""

        def firm(group: int, key: int) -> Sequence[Input]:
            return self.inputs.get((history.groups[group].name, history.keys[key]), ())

        def shown(group: int, works: Sequence[Work]) -> Collection[int] | None:
            name = history.groups[group].name
            if name not in self.unsure:
                return ()
            mine = {_topic(history.keys[key]) for work in works for key in work.output_keys}
            topics = mine | self.topics.get(name, frozenset())
            keys = {name for name in self.names if _topic(name) in topics}
            if not self.read.issuperset(keys):
                return None
            return frozenset[int]().union(*(self.shown.get(key, ()) for key in keys))

        works = [work for work in outputs.works(history) if work.op in self.suspects]
        return outputs.judge(history, works, Given(firm, shown))


class Outputs(NamedTuple):
    """What is known of exactly-once processing beyond single slices."""

    whole: _Known = _Known()
    clean: _Known = _Known()
    """Likewise without the records that are misplaced."""
    gave_up: str = ""
    """Why nothing is found; empty if something may be."""

    @property
    def ops(self) -> I64:
        """The operations that have to be looked up."""
        return np.array(sorted(self.whole.ops | self.clean.ops), dtype=np.int64)

    def kernel(self, history: History, *, is_clean: bool) -> Iterable[Found]:
        """Return what is found, given the operations that were looked up."""
        if self.gave_up:
            raise GaveUp(self.gave_up)
        return (self.clean if is_clean else self.whole).judge(history)


def across(slicing: Slicing, passes: Passes, happened: Happened) -> Outputs:
    """Ask the slices about transactions that process inputs, if there are any."""
    if not any(each.counts.commits_in_transactions for each in passes.judged):
        return Outputs()
    if any(each.repeated for each in passes.judged):
        return Outputs(gave_up=outputs.REPEATED)
    if slicing.never_whole:
        names = ", ".join(slicing.never_whole)
        return Outputs(gave_up=f"too many operations of {names} would have to be judged together")
    blamed = [passes.found[place] for place in history_kernels.misplaced(passes.found)]
    gone = frozenset((found.key, found.value) for found in blamed)
    whole = _known(slicing, passes, happened, ())
    return Outputs(whole, _known(slicing, passes, happened, gone) if gone else whole)


def _known(slicing: Slicing, passes: Passes, happened: Happened, gone: Records) -> _Known:
    known = output_task.Known(happened, passes.proven, gone)
    seen = slicing.asked_of_works(partial(output_task.examine, known), gone)
    inputs = {place: left for each in seen for place, left in each.inputs.items()}
    suspects = frozenset[int]().union(*(each.suspects for each in seen))
    if not suspects:
        return _Known()
    unsure = frozenset[str]().union(*(each.unsure for each in seen))
    places = [(*place, ops) for each in seen for place, ops in each.outputs.items()]
    asked = unsure & {group for group, _ in inputs}
    topics = {
        group: frozenset(_topic(key) for of, key, failed in places if of == group and not failed)
        for group in asked
    }
    for group, key, failed in places:
        if group in asked and _topic(key) not in topics[group]:
            suspects |= failed
    values = {
        value for (group, _), left in inputs.items() if group in asked for _, value, _ in left
    }
    of_these = frozenset(_topic(key) for group, key, _ in places if group in asked)
    question = Asked(suspects, frozenset(values), of_these)
    near = slicing.asked_of_works(partial(output_task.neighbours, known, question), gone)
    ops = suspects.union(*(each.others for each in seen), *(each.ops for each in near))
    return _Known(
        suspects,
        ops,
        inputs,
        unsure,
        topics,
        {key: values for each in near for key, values in each.shown.items() if values},
        passes.names,
        passes.caught_up,
    )


def _topic(key: str) -> str:
    return key.rpartition("-")[0]
