"""The numbers of brokers and replicas that a search draws."""

import random

from harness.app.search import layouts


def test_layouts_leave_a_replica_to_spare() -> None:
    """No layout needs all of several replicas for a write."""
    for layout in layouts.LAYOUTS:
        assert layout.min_isr < layout.replication_factor or layout.replication_factor == 1
        assert layout.replication_factor <= layout.brokers


def test_the_pinned_numbers_hold_and_every_layout_is_drawn() -> None:
    """A layout agrees with what is pinned; without that, all layouts occur."""
    free = {layouts.drawn(random.Random(seed), {}) for seed in range(200)}
    assert free == set(layouts.LAYOUTS)
    for seed in range(10):
        assert layouts.drawn(random.Random(seed), {"brokers": 5}).brokers == 5
        one = layouts.drawn(random.Random(seed), {"brokers": 1})
        assert (one.brokers, one.replication_factor) == (1, 1)
