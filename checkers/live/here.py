"""Judges batches in this process; the twin of :mod:`checkers.live.on_spark`."""

from collections.abc import Iterable

from checkers.expectations import Contract
from checkers.live import batches
from checkers.live.partition import Looked, Partition
from model.batch import Batch


class Here:
    """The states of all partitions."""

    def __init__(self) -> None:
        self._partitions: dict[str, Partition] = {}

    def judge(self, batch: Batch, contract: Contract) -> Looked:
        """Judge one more batch, and return what it shows."""
        return joined(self._of(key).judge([part], contract) for key, part in batches.cut(batch))

    def _of(self, key: str) -> Partition:
        if key not in self._partitions:
            self._partitions[key] = Partition.new(key)
        return self._partitions[key]

    @property
    def events(self) -> int:
        """How many events the states have."""
        return sum(each.events.num_rows for each in self._partitions.values())


def joined(looked: Iterable[Looked]) -> Looked:
    """Return what several partitions show, the earliest first; each node's crash is shown once."""
    every = list(looked)
    seen = {
        (each.finding.anomaly, each.finding.key, each.finding.ops, each.finding.value): each
        for one in every
        for each in one.seen
    }
    return Looked(
        tuple(sorted(seen.values(), key=lambda each: each.witnessed_ns)),
        tuple(dict.fromkeys(crash for one in every for crash in one.crashed)),
    )
