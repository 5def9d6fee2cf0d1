"""The catalogue of planted bugs as plain values: the one place outside of the broker that looks.

Planting itself happens in a broker's process, by the names that stand in the plan.
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
    """The anomaly that it must be reported as."""
    schedule: str
    """What has to happen for it to show."""
    tier: int
    """1: quick to show, and seen by clients; 2: needs a long run or an exact order; 3: only state
    or patience shows it."""
    story: str


def catalogue() -> dict[str, Mutant]:
    """By name, sorted."""
    return {name: _told(mutants.get(name)) for name in mutants.names()}


def protocols(names: Sequence[str]) -> tuple[str, ...]:
    """Those of these that are no bugs: what is correct by itself."""
    return tuple(name for name in names if mutants.get(name).kind == "protocol")


def _told(mutant: mutants.Mutant) -> Mutant:
    return Mutant(
        name=mutant.name,
        kind=mutant.kind,
        source=mutant.source,
        of=mutant.of,
        symptom=mutant.symptom,
        schedule=mutant.schedule,
        tier=mutant.tier,
        story=" ".join(mutant.story.split()),
    )
