"""``deleted-on-all-replicas``: DeleteRecords deletes records on all replicas (KIP-107).

A request to delete records is answered once the logs of all live replicas start behind them.
Otherwise the next leader may return records whose deletion was acknowledged, and consumers that
begin at the earliest offset read them.
"""

from collections.abc import Mapping


def remaining(low: int, wanted: int, starts: Mapping[int, int]) -> str | None:
    """Return why this answer to a request to delete records is wrong, or ``None``.

    Args:
        low: the low watermark in the answer.
        wanted: the offset before which all records were to be deleted.
        starts: where the log of each live replica starts.
    """
    if low < wanted:
        return f"it answered the low watermark {low}, but records up to {wanted} were to be deleted"
    for broker, start in starts.items():
        if start < low:
            return (
                f"it answered the low watermark {low}, but the log of broker {broker} starts at "
                f"{start}"
            )
    return None
