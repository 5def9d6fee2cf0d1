"""The rows of a whole history, for kernels that need more than one partition."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from checkers.kernels.arrays import I32, SPARSE, TABLE, distinct
from checkers.kernels.compact import AllPolls, AllSends
from checkers.kernels.rows import I64, Bools, Rows
from checkers.kernels.steps import Group, Steps


class Records:
    """Finds records by partition and value."""

    def __init__(self, key: I64, value: I64, keys: int) -> None:
        self._keys = keys
        self._table: I32 | None = None
        """The first row of each record, or -1, by the number of its value and its partition."""
        if len(value):
            self._least, self._most = int(value.min()), int(value.max())
            size = (self._most - self._least + 1) * keys
            if size <= min(TABLE, SPARSE * len(value)):
                self._table = np.full(size, -1, dtype=np.int32)
                rows = np.arange(len(value) - 1, -1, -1, dtype=np.int32)
                self._table[((value - self._least) * keys + key)[::-1]] = rows
                return
        self._values = distinct(value)
        codes = np.searchsorted(self._values, value) * keys + key
        self._codes, self._rows = np.unique(codes, return_index=True)

    def find(self, key: I64, value: I64) -> I64:
        """Return the first row of each record, or -1."""
        if self._table is not None:
            outside = (value < self._least) | (value > self._most)
            code = (value - self._least) * self._keys + key
            code[outside] = 0
            row = self._table.take(code).astype(np.int64)
            row[outside] = -1
            return row
        if not len(self._codes):
            return np.full(len(key), -1)
        rank = np.minimum(np.searchsorted(self._values, value), len(self._values) - 1)
        code = rank * self._keys + key
        row = np.minimum(np.searchsorted(self._codes, code), len(self._codes) - 1)
        hit = (self._values[rank] == value) & (self._codes[row] == code)
        return np.where(hit, self._rows[row], -1)


class Init(NamedTuple):
    """A process took over a transactional id; its former owner is fenced from then on."""

    transactional_id: str
    process: int
    invoked: int
    op: int
    start_ns: int
    end_ns: int


class _Attempts(NamedTuple):
    transactional_id: I64
    """A number for each id; UNKNOWN for the processes that reported none."""
    process: I64
    op: I64
    succeeded: Bools
    """Whether it did what was asked, which may have been to abort."""
    start_ns: I64
    end_ns: I64


class Attempts(Rows, _Attempts):
    """One row per use of a transactional producer: an ``init``, or a transaction that sends; in the
    order of ``op``."""

    __slots__ = ()


NO_ATTEMPTS = Attempts(
    *(np.zeros(0, dtype=np.bool_ if f == "succeeded" else np.int64) for f in Attempts._fields)
)


@dataclass(frozen=True)
class History:
    """The rows of all partitions together, for what no single partition can show."""

    keys: tuple[str, ...]
    """Names of partitions; the key columns hold indices into them."""
    sends: AllSends
    polls: AllPolls
    waits: tuple[I64, I64] | None
    """For each row of ``sends``, an event after which its record was certainly sent, and one after
    which its operation certainly went on. ``None`` where no operation had a delay."""
    inits: tuple[Init, ...]
    """The takeovers that were acknowledged, in the order of ``op``."""
    attempts: Attempts
    steps: Steps
    step_key: I64
    groups: tuple[Group, ...]
    finished: frozenset[int]
    """Partitions that were read to their ends after everything was acknowledged."""
    healed_ns: int | None
    """When the last fault was healed, 0 without any; ``None`` if one was not."""
    repeated: tuple[tuple[int, int, tuple[int, ...]], ...] = field(default=(), kw_only=True)
    """Partition, value and operations of each value that more than one operation may have written:
    the rows of such values are left out."""

    @cached_property
    def send_key(self) -> I64:
        """The partition of each row of ``sends``."""
        return self.sends.key.astype(np.int64)

    @cached_property
    def poll_key(self) -> I64:
        """The partition of each row of ``polls``."""
        return self.polls.key.astype(np.int64)

    @property
    def send_after(self) -> I64:
        """For each row of ``sends``, an event after which its record was certainly sent."""
        return self.sends.invoked if self.waits is None else self.waits[0]

    @property
    def send_until(self) -> I64:
        """For each row of ``sends``, an event after which its operation certainly went on."""
        return self.sends.invoked if self.waits is None else self.waits[1]

    @cached_property
    def writer(self) -> I64:
        """For each row of ``polls``, the row of the send that wrote its record, or -1."""
        written = Records(self.send_key, self.sends.value, len(self.keys))
        return written.find(self.poll_key, self.polls.value)

    def without(self, records: Collection[tuple[str | None, int | None]]) -> Self:
        """Return this history without the sends and reads of these records, each a partition and a
        value."""
        code = {key: number for number, key in enumerate(self.keys)}
        known = [(code[key], value) for key, value in records if key in code]
        of, value = np.array(known, dtype=np.int64).reshape(-1, 2).T
        gone = Records(of, value, len(self.keys))
        sent = gone.find(self.send_key, self.sends.value) < 0
        polled = gone.find(self.poll_key, self.polls.value) < 0
        return replace(
            self,
            sends=self.sends.only(sent),
            polls=self.polls.only(polled),
            waits=self.waits and (self.waits[0][sent], self.waits[1][sent]),
        )
