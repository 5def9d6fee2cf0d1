"""One anomaly: everything that verdicts, reports and docs/anomalies.md say about it."""

from dataclasses import dataclass
from typing import Literal

from checkers.anomalies.legality import Rule, always, never


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """A way in which a history, or the brokers' state, can be wrong."""

    id: str
    """The name in findings and verdicts: Jepsen's where Jepsen has one."""
    checker: str
    """The checker that reports it, by its name in ``verdict.json``."""
    summary: str
    """What was observed, in one sentence, as the report says it."""
    definition: str
    """When exactly a history shows it, as docs/anomalies.md says it."""
    allows: Rule = never
    """Whether a contract permits a finding of it."""
    legal_when: str = "never"
    """The rule ``allows`` in words, as docs/anomalies.md says it."""
    counted_by: Literal["value", "offset", "witnesses"] = "value"
    """What makes two findings of it different: the value or the offset that they are about, in
    their partition, or the operations that witness them."""
    is_excused_by_unclean_elections: bool = True
    """Whether ``unclean.leader.election.enable`` makes it legal."""
    excused_by_late_end: Literal["always", "of transactions"] | None = None
    """Whether it is legal where the protocol lets a late commit or abort end the producer's next
    transaction (KAFKA-17754), and then always or only for records of transactions."""

    @property
    def is_information(self) -> bool:
        """Whether no contract forbids it. Then one finding stands for all others of its kind, which
        are folded into it."""
        return self.allows is always
