"""Each operation has the longest known order that ends with it, or the reason why it has none."""

from checkers.linearizability import judging, models
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal
from harness.app.objects_page import partial_orders
from harness.app.objects_page.partial_orders import Placement


def placements(operations: list[Operation], model: models.Model) -> dict[int, Placement]:
    """Judge operations, of which no order must explain all, and place each."""
    (part,) = judging.judge(operations, model).parts
    assert isinstance(part.outcome, Illegal)
    return partial_orders.of(part.operations, part.outcome, model, range(len(operations)))


STALE = [
    Operation("write", 1, 0, 1, 0, 0, 1),
    Operation("read", 1, 2, 5, 1, 2, 5),
    Operation("write", 2, 3, 4, 0, 3, 4),
    Operation("write", 3, 6, NEVER, 2, 6),
    Operation("read", 2, 7, 8, 0, 7, 8),
    Operation("read", 1, 9, 10, 1, 9, 10),
]


def test_every_order_is_legal() -> None:
    """Each order can be executed, keeps to real time, and ends with its operation."""
    model = models.Register(0)
    for row, found in placements(STALE, model).items():
        if not found.has_place:
            continue
        assert found.order[-1] == row
        state = model.initial
        for at, each in enumerate(found.order):
            state = model.step(state, STALE[each])
            assert not isinstance(state, models.Inconsistent)
            assert not any(STALE[later].end < STALE[each].call for later in found.order[at + 1 :])


def test_what_is_said() -> None:
    """An operation of the order says how the state changes; the blocked one says why it has no
    place; one in doubt says which result it would make illegal."""
    found = placements(STALE, models.Register(0))
    assert found[2].says[0].endswith("the state 1 becomes 2.")
    assert found[4].says[0].endswith("the state stays 2.")
    assert not found[5].has_place
    assert "has no place: it read 1, and the register held 2; or it" in found[5].says[0]
    assert found[3].has_place
    assert "write 3 of process 2 (event 6) (never completed)" in found[3].says[0]


def test_an_operation_is_delayed() -> None:
    """An operation that could have taken effect later has a longer order than in the whole one."""
    queue = [
        Operation("enqueue", 1, 0, 5, 0, 0, 5),
        Operation("enqueue", 2, 1, 4, 1, 1, 4),
        Operation("dequeue", 9, 6, 7, 2, 6, 7),
    ]
    found = placements(queue, models.FifoQueue())
    assert sorted(found[0].order) == sorted(found[1].order) == [0, 1]
    assert (found[0].order[-1], found[1].order[-1]) == (0, 1)
