"""One row of the table of invariants."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """A property of every correct cluster, and when it is not checked."""

    id: str
    """The name of its violations."""
    rules: str
    """The rules of Kafka's protocol that it follows from, and the KIP or issue that names it."""
    summary: str
    """What a violation means, in one sentence, as the report says it."""
    holds: str
    """What holds, as docs/anomalies.md says it."""
    suspended_under: str = "–"  # noqa: RUF001 - as printed
    """The settings and events under which it is not checked, as docs/anomalies.md says it."""
