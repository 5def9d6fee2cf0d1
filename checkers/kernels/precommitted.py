"""Precommitted reads: a transaction receives its own records before it is committed."""

import numpy as np

from checkers.kernels.found import Found, at
from checkers.kernels.log import Log


def precommitted_reads(log: Log) -> list[Found]:
    """Find records that a transaction polled and had sent itself, whatever its outcome. Jepsen's
    ``precommitted-read``."""
    if not log.sends.txn.any():
        return []
    sends, polls = log.sends.where(log.sends.txn), log.polls.where(log.polls.txn)
    polls = polls.where(np.isin(polls.value, sends.value))
    if not len(polls.op):
        return []
    sends = sends.where(np.argsort(sends.value, kind="stable"))
    row = np.searchsorted(sends.value, polls.value)
    own = polls.where(sends.op[row] == polls.op)
    own = own.where(np.unique(own.value, return_index=True)[1])
    return [
        Found(
            anomaly="precommitted-read",
            key=log.key,
            offset=offset,
            value=value,
            ops=(op,),
            why=f"a transaction of process {process} read value {value} at offset {offset}, "
            f"which it had sent itself and which cannot have been committed before {at(end_ns)}",
        )
        for offset, value, op, process, end_ns in zip(
            own.offset.tolist(),
            own.value.tolist(),
            own.op.tolist(),
            own.process.tolist(),
            own.end_ns.tolist(),
            strict=True,
        )
    ]
