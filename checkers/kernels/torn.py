"""Torn transactions: some records of a transaction were read, and others are lost."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from checkers.kernels.found import Found, at
from checkers.kernels.history import History
from checkers.kernels.rows import I64


def kernel(history: History, found: Sequence[Found]) -> list[Found]:
    """Combine the lost writes of each torn transaction into one finding; keep all others.

    A torn transaction happened in some places and not in others; one that is lost whole is not
    torn. ``key``, ``value`` and ``offset`` are of the first record that is missing, ``folded`` is
    how many are, and ``also`` are the values that are there; before them, of the variants
    ``deleted`` and ``deleted-read``, how long ago the last tombstone was sent. Each variant of the
    lost writes is a finding of its own, because a contract may permit one and not another.
    """
    sends = history.sends
    lost: dict[int, list[Found]] = {}
    for f in found:
        if f.anomaly == "lost-write":
            lost.setdefault(f.ops[0], []).append(f)
    mine = np.flatnonzero(sends.txn & np.isin(sends.op, np.array(list(lost), dtype=np.int64)))
    missing = {(f.key, f.value) for several in lost.values() for f in several}
    readers = _readers(history, mine)
    torn: dict[int, list[Found]] = {}
    for row, reader in zip(mine.tolist(), readers.tolist(), strict=True):
        record = (history.keys[history.send_key[row]], int(sends.value[row]))
        if reader < 0 or record in missing:
            continue
        op = int(sends.op[row])
        if op in torn:
            torn[op] = [replace(f, also=(*f.also, record[1])) for f in torn[op]]
        else:
            torn[op] = [_torn(history, same, row, reader) for same in _by_variant(lost[op])]
    standing = [f for f in found if f.anomaly != "lost-write" or f.ops[0] not in torn]
    return standing + [f for several in torn.values() for f in several]


def _by_variant(lost: Sequence[Found]) -> Iterable[list[Found]]:
    """Return the lost writes of each variant, those first whose tombstone was sent last."""
    variants: dict[str, list[Found]] = {}
    for f in lost:
        variants.setdefault(f.variant, []).append(f)
    return [sorted(same, key=lambda f: f.also) for same in variants.values()]


def _readers(history: History, rows: I64) -> I64:
    """Return for each row of a send the first poll that delivered its record, or -1."""
    polls = history.polls
    near = np.flatnonzero(np.isin(polls.value, history.sends.value[rows]))[::-1]
    keys, values = history.poll_key[near].tolist(), polls.value[near].tolist()
    first = dict(zip(zip(keys, values, strict=True), near.tolist(), strict=True))
    sent = zip(history.send_key[rows].tolist(), history.sends.value[rows].tolist(), strict=True)
    return np.array([first.get(record, -1) for record in sent], dtype=np.int64)


def _torn(history: History, lost: Sequence[Found], seen: int, reader: int) -> Found:
    sends, polls, first = history.sends, history.polls, lost[0]
    many = f", and of {len(lost) - 1} more records," if len(lost) > 1 else ""
    return Found(
        anomaly="torn-transaction",
        key=first.key,
        offset=first.offset,
        value=first.value,
        variant=first.variant,
        ops=(first.ops[0], int(polls.op[reader]), *first.ops[1:]),
        also=(*first.also, int(sends.value[seen])),
        why=f"process {polls.process[reader]} read value {sends.value[seen]} of"
        f" {history.keys[history.send_key[seen]]} at {at(int(polls.end_ns[reader]))}, from a"
        f" transaction of process {sends.process[seen]}; of its record in {first.key}{many} this is"
        f" known: {first.why}",
        folded=sum(f.folded for f in lost) + len(lost),
    )
