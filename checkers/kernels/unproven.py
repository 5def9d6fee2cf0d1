"""Unproven: what was read of a transaction while it was open does not tell that it happened."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from checkers.kernels.history import History
from checkers.kernels.rows import INFO, Found


def kernel(history: History, found: Sequence[Found]) -> list[Found]:
    """The same findings without the losses of transactions in doubt that are known from a
    ``dirty-read``: they may have been aborted. They are folded under it."""
    sends = history.sends
    doubtful = set(sends.op[sends.txn & (sends.outcome == INFO)].tolist())
    dirty = {f.ops[0] for f in found if f.anomaly == "dirty-read"} & doubtful
    losses = Counter(f.ops[0] for f in found if f.anomaly == "lost-write" and f.ops[0] in dirty)
    told = [f for f in found if f.anomaly != "lost-write" or f.ops[0] not in dirty]
    return [
        msgspec.structs.replace(f, folded=f.folded + losses[f.ops[0]])
        if f.anomaly == "dirty-read"
        else f
        for f in told
    ]
