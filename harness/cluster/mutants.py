"""The catalogue of planted bugs (mutants) as plain values, for all code outside of the broker.

A mutant is planted in the process of a broker or of a ZooKeeper server, by its name in the plan.
"""

from collections.abc import Sequence

import msgspec

from broker_impl import mutants


class Mutant(msgspec.Struct, frozen=True, kw_only=True):
    """One planted bug, as a user sees it."""

    name: str
    kind: str
    """``historic``, ``mutation``, ``control`` or ``protocol``."""
    source: str
    of: str
    """The rule that it replaces, ``module:function``."""
    symptom: str
    """The anomaly that checkers must report for it."""
    schedule: str
    """What must happen for the bug to show."""
    tier: int
    """How hard the bug is to find.

    1: it shows quickly, and clients see it; 2: it needs a long run or an exact order; 3: only the
    brokers' state or much patience shows it.
    """
    story: str
    system: mutants.System = "kafka"
    """Where it is planted: in brokers, or in the servers of a ZooKeeper ensemble."""
    is_planned: bool = True
    """Does a plan show it? Others have the reason in docs/zookeeper-bugs.md, or a test."""

    @property
    def is_measured(self) -> bool:
        """Is it a bug that a plan shows, so that the detection matrix has a row for it?"""
        return self.is_planned and self.kind not in ("control", "protocol")


def catalogue(system: mutants.System | None = None) -> dict[str, Mutant]:
    """All mutants, or those of brokers, or of ZooKeeper servers, by name, sorted."""
    return {name: _mutant(mutants.get(name)) for name in mutants.names(system)}


def protocols(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the named mutants that are no bugs but correct protocols."""
    return tuple(name for name in names if mutants.get(name).kind == "protocol")


def _mutant(mutant: mutants.Mutant) -> Mutant:
    return Mutant(
        name=mutant.name,
        kind=mutant.kind,
        source=mutant.source,
        of=mutant.of,
        symptom=mutant.symptom,
        schedule=mutant.schedule,
        tier=mutant.tier,
        story=" ".join(mutant.story.split()),
        system=mutant.system,
        is_planned=mutant.is_planned,
    )
