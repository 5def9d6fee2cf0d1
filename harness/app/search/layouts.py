"""The numbers of brokers and replicas that a search draws, and what depends on them."""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

EXCLUSIVE_PS = (0.0, 0.3, 0.6, 0.9)
"""The base probability that a period of a schedule belongs to one fault alone."""


class Layout(NamedTuple):
    """The numbers of brokers and replicas, and the draws that depend on them."""

    brokers: int
    replication_factor: int
    min_isr: int
    weight: float
    always: tuple[str, ...] = ()
    """Kinds of faults that no run with drawn nemeses leaves out."""
    alone: tuple[float, ...] = EXCLUSIVE_PS
    """The probabilities that a period of a schedule belongs to one fault alone."""
    synced: float = 0.25
    """The probability that records are synced before they are acknowledged."""
    segment_bytes: tuple[int, ...] = (2048, 16384, 1 << 30, 1 << 30)


SINGLE = Layout(
    3,
    1,
    1,
    2,
    always=("power",),
    alone=(max(EXCLUSIVE_PS),),
    synced=0.9,
    segment_bytes=(2048, 16384),
)
"""A layout with one replica. Its disk holds the only copy, so these runs test the disk."""
LAYOUTS = (
    Layout(3, 3, 2, 8),
    Layout(3, 3, 1, 3),
    Layout(3, 2, 1, 3),
    SINGLE,
    Layout(4, 3, 2, 3),
    Layout(4, 4, 2, 1),
    Layout(5, 3, 2, 2),
    Layout(5, 5, 3, 1),
)
"""The layouts that are drawn.

None requires all of several replicas for a write, because such a run would mostly wait.
"""


def drawn(rng: random.Random, pinned: Mapping[str, Any]) -> Layout:
    """Choose a layout that agrees with the pinned fields, or build one from the pinned numbers."""
    brokers = pinned.get("brokers")
    broker, options = pinned.get("broker", {}), pinned.get("options", {})
    factor = options.get("replication_factor")
    min_isr = broker.get("min.insync.replicas")
    fitting = [
        layout
        for layout in LAYOUTS
        if brokers in (None, layout.brokers)
        and factor in (None, layout.replication_factor)
        and min_isr in (None, str(layout.min_isr))
    ]
    [chosen] = rng.choices(LAYOUTS, [layout.weight for layout in LAYOUTS])
    if fitting and chosen not in fitting:
        [chosen] = random.Random(rng.random()).choices(fitting, [each.weight for each in fitting])
    if not fitting:
        factor = factor or min(3, brokers or 3)
        alike = SINGLE if factor == 1 else Layout(3, factor, 1, 0)
        chosen = alike._replace(brokers=brokers or 3)
    return chosen
