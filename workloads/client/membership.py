"""What a member of a consumer group is told, in the order in which it is told.

Rebalances happen whenever they happen, records have been read before or after them: an operation
tells of rebalances first and then of records, so what does not fit waits for the next one.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Literal

from model.op import MicroOp

Change = Literal["assigned", "revoked", "lost"]
Records = dict[str, list[list[int]]]
"""By key: offsets and values, in the order they came."""


class Feed:
    """Takes what a client library tells, and gives it away as micro-operations."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._told: deque[MicroOp | Records] = deque()
        self.positions: dict[str, int] = {}
        """By key that is owned and of which something was read: the next offset."""

    def assigned(self, generation: int | None, keys: Iterable[str]) -> None:
        """Where the member begins is not known yet; see :meth:`unplaced`."""
        begins: dict[str, int | None] = dict.fromkeys(sorted(keys))
        self._told.append(["assigned", self._group, generation, begins])

    def gone(self, change: Change, generation: int | None, keys: Iterable[str]) -> None:
        """Keys were asked back (``revoked``), or are somebody else's already (``lost``)."""
        keys = sorted(keys)
        for key in keys:
            self.positions.pop(key, None)
        self._told.append([change, self._group, generation, keys])

    def committed(self, offsets: Mapping[str, int]) -> None:
        """By the member's listener: acknowledged, or in doubt as the whole operation is."""
        self._told.append(["commit", self._group, dict(offsets), "listener"])

    def read(self, key: str, pairs: list[list[int]]) -> None:
        """Records of a key, which the member owns."""
        if not pairs:
            return
        if not self._told or not isinstance(self._told[-1], dict):
            self._told.append({})
        last = self._told[-1]
        assert isinstance(last, dict), "made above"
        last.setdefault(key, []).extend(pairs)
        self.positions[key] = pairs[-1][0] + 1

    @property
    def has_records(self) -> bool:
        """Will the next operation tell of records?"""
        return any(isinstance(told, dict) for told in self._told)

    def unplaced(self) -> list[dict[str, int | None]]:
        """What the member was assigned and nobody was told yet: where it begins is to be filled in
        before it reads."""
        return [told[3] for told in self._told if isinstance(told, list) and told[0] == "assigned"]

    def take(self) -> list[MicroOp]:
        """What happened up to the next records, and these."""
        micro_ops: list[MicroOp] = []
        records: Records = {}
        while self._told:
            told = self._told.popleft()
            if isinstance(told, dict):
                records = told
                break
            micro_ops.append(told)
        return [*micro_ops, ["poll", records]]
