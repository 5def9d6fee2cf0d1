"""The verdict about a history of another data type than Kafka's logs."""

from typing import Any, Literal

import msgspec

Valid = bool | Literal["unknown"]
SHOWN = 5
"""How many anomalies of a kind are explained."""


class ObjectVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict about a history of any data type."""

    valid: Valid
    model: str
    operations: int
    """How many operations of clients were judged; of transactions, how many there are."""
    anomalies: dict[str, int] = {}
    """By anomaly, how many were found; for transactions the most severe first."""
    allowed: dict[str, int] = {}
    """Anomalies that were found, and that the consistency allows."""
    ruled_out: tuple[str, ...] = ()
    """The weakest consistency models that the anomalies rule out, allowed ones included."""
    also_ruled_out: tuple[str, ...] = ()
    """The stronger consistency models that are ruled out, too."""
    why: tuple[str, ...] = ()
    """Sentences that explain the first anomalies."""
    figures: dict[str, Any] = {}
    """Counts and lists of Jepsen's checkers."""
    unknown_because: str | None = None
    notes: tuple[str, ...] = ()
