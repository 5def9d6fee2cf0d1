"""Two batches of events are merged into one order."""

import numpy as np
import pytest

from checkers.event_batches import Batch, merged
from checkers.events import Event, EventColumns, assembled
from checkers.kernels.rows import Bools
from checkers.pieces import Part

EVENTS = [
    Event(0, 0, 0, "ok", "send", [["send", "x", [0, 7]], ["send", "y", 8]]),
    Event(1, 1, 1, "ok", "commit", [["commit", "g", {"x": 3, "y": 4}, "sync"], ["poll"]]),
    Event(2, 2, -1, "info", "kill", {"node": "n1"}),
    Event(3, 3, 0, "ok", "poll", [["poll", {"x": [[0, 7], [1, 8]], "y": [[0, 8]]}]], "Timeout"),
    Event(4, 4, 2, "ok", "committed", [["committed", "h", {"y": 4}]]),
    Event(5, 5, 3, "invoke", "poll", None),
]


@pytest.mark.parametrize("order", range(1 << len(EVENTS)))
def test_events_are_merged_in_their_order(order: int) -> None:
    """However events are distributed over two batches, the merged columns are the same."""
    whole = EventColumns()
    whole.add(EVENTS)
    columns = EventColumns()
    columns.add(EVENTS[:1])
    columns.piece()
    columns.names.update(whole.names)
    for kind in ("errors", "ops", "keys", "groups"):
        getattr(columns, kind).update(getattr(whole, kind))
    is_of_some = np.array([bool(order >> n & 1) for n in range(len(EVENTS))])
    some, others = (part(columns, is_of_some == wanted) for wanted in (True, False))
    if some.details or some.group is not None:  # only the second batch may have these
        some, others, is_of_some = others, some, ~is_of_some
    if not (some.details or some.group is not None):
        merged(some, others, is_of_some).append_to(columns)
        expected = assembled(whole.finish(Part()))
        assert assembled(columns.finish(Part())).equals(expected)


def part(columns: EventColumns, wanted: Bools) -> Batch:
    """Return some of the events as a batch with the codes of other columns."""
    of_part = columns.sibling()
    of_part.add([event for event, one in zip(EVENTS, wanted, strict=True) if one])
    return Batch.of(of_part)


def test_a_line_with_two_events_is_refused() -> None:
    """The number of events has to be that of the lines."""
    columns = EventColumns()
    columns.add(EVENTS)
    batch = Batch.of(columns)
    with pytest.raises(ValueError, match="exactly one event"):
        merged(batch, batch, np.ones(len(EVENTS), dtype=np.bool_))
