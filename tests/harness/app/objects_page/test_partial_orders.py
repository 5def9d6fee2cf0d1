"""Each operation has the longest known order that ends with it."""

from checkers.linearizability import judging, models
from checkers.linearizability.models import Inconsistent, Model
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal
from harness.app.objects_page import partial_orders
from harness.app.objects_page.partial_orders import Placement

OPERATIONS = [
    Operation("write", 1, 0, 5, 0),
    Operation("write", 2, 1, 4, 1),
    Operation("write", 7, 2, NEVER, 2),
    Operation("read", 2, 6, 7, 3),
    Operation("read", 1, 8, 9, 3),
]


def placed(operations: list[Operation], model: Model) -> dict[int, Placement]:
    """Return the places of all operations, each checked step by step."""
    (part,) = judging.judge(operations, model).parts
    assert isinstance(part.outcome, Illegal)
    found = partial_orders.of(part.operations, part.outcome, model, range(len(operations)))
    for row, placement in found.items():
        state = model.inner.initial
        for each in placement.order:
            after = model.inner.step(state, part.operations[each])
            assert not isinstance(after, Inconsistent)
            state = after
        assert (placement.order[-1:] == (row,)) == placement.has_place
    return found


def test_orders_are_legal_and_end_with_their_operations() -> None:
    """An operation may take effect after concurrent ones, and one that is not needed may, too."""
    found = placed(OPERATIONS, models.Register(0))
    assert found[0].order == (1, 0)
    assert found[1].order == (0, 1)
    assert found[3].order == (0, 1, 3)
    assert found[2].order == (0, 1, 3, 2)
    assert found[2].says[1] == "No result needs it."
    assert not found[4].has_place
    assert "has no place: it read 1, and the register held 2" in found[4].says[0]


def test_a_concurrent_operation_may_be_delayed() -> None:
    """Of two enqueued elements, the second one of the order may come first, too: the longest order
    that ends with the first one contains the other."""
    queue = [
        Operation("enqueue", 1, 0, 5, 0),
        Operation("enqueue", 2, 1, 4, 1),
        Operation("dequeue", 3, 6, 7, 2),
    ]
    found = placed(queue, models.FifoQueue())
    assert sorted(len(found[row].order) for row in (0, 1)) == [2, 2]
