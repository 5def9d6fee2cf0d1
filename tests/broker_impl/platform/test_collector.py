"""The garbage collector of a server."""

import gc

from broker_impl.platform.collector import THRESHOLDS, tune_collector


def test_what_exists_is_left_out_and_later_cycles_are_found() -> None:
    """Objects that exist are frozen; cycles of later ones are still found."""

    class Node:
        other: "Node"

    before = gc.get_threshold()
    tune_collector()
    try:
        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold() == THRESHOLDS
        first, second = Node(), Node()
        first.other, second.other = second, first
        del first, second
        assert gc.collect() >= 2
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
