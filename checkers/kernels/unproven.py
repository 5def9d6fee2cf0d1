"""Unproven: a read of a transaction while it was open does not show that it was committed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from checkers.kernels.found import Found
from checkers.kernels.history import History
from checkers.kernels.rows import INFO


def kernel(history: History, found: Sequence[Found]) -> list[Found]:
    """Drop losses of transactions in doubt that are known only from a ``dirty-read``, and keep the
    other findings. Such a transaction may have been aborted; its losses are folded into the
    ``dirty-read``."""
    sends = history.sends
    doubtful = set(sends.op[sends.txn & (sends.outcome == INFO)].tolist())
    dirty = {f.ops[0] for f in found if f.anomaly == "dirty-read"} & doubtful
    losses = Counter(f.ops[0] for f in found if f.anomaly == "lost-write" and f.ops[0] in dirty)
    kept = [f for f in found if f.anomaly != "lost-write" or f.ops[0] not in dirty]
    return [
        replace(f, folded=f.folded + losses[f.ops[0]]) if f.anomaly == "dirty-read" else f
        for f in kept
    ]
