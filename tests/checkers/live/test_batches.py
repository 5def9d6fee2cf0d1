"""A batch is cut into parts by partition, each with what it needs of earlier batches."""

from checkers import arrow
from checkers.columns import only
from checkers.distributed import packing
from checkers.live import batches
from model import batch as batch_
from tests.checkers.live.recording import Recording


def _indices(part: batches.Part) -> list[int]:
    indices: list[int] = arrow.numbers(only(packing.unpacked([part.events])["index"])).tolist()
    return indices


def test_a_part_has_the_operations_of_its_partition(recording: Recording) -> None:
    """Sends and polls of other partitions are not in it."""
    recording.sent("x-0", 0, 0)
    recording.sent("y-0", 0, 0)
    recording.polled("x-0", (0, 0))
    [batch] = recording.tail.batches()
    parts = dict(batches.cut(batch))
    assert _indices(parts["x-0"]) == [0, 1, 4, 5]
    assert _indices(parts["y-0"]) == [2, 3]


def test_an_operation_comes_whole_with_the_batch_that_completes_it(recording: Recording) -> None:
    """An open invocation is in both batches: in the first one it may have happened."""
    recording.record(0, "invoke", "send", [["send", "x-0", 0]])
    [first] = recording.tail.batches()
    recording.record(0, "fail", "send", None)
    [second] = recording.tail.batches()
    assert _indices(dict(batches.cut(first))["x-0"]) == [0]
    assert _indices(dict(batches.cut(second))["x-0"]) == [0, 1]


def test_a_partition_without_news_gets_what_concerns_all(recording: Recording) -> None:
    """Faults and assignments are parts of every partition, also of those that come later."""
    recording.sent("x-0", 0, 0)
    recording.tail.batches()
    recording.record(-1, "invoke", "kill", {"id": 1, "phase": "apply"})
    recording.record(9, "invoke", "assign", ["x-0"])
    recording.record(9, "ok", "assign", ["x-0"])
    [batch] = recording.tail.batches()
    assert _indices(dict(batches.cut(batch))["x-0"]) == [2, 3, 4]
    recording.sent("y-0", 0, 0)
    [batch] = recording.tail.batches()
    parts = dict(batches.cut(batch))
    assert _indices(parts["y-0"]) == [2, 3, 4, 5, 6]
    assert batch.new_keys == ("y-0",)


def test_an_empty_batch_has_empty_parts(recording: Recording) -> None:
    """The batch that shows that a judge works names partitions, and has no event."""
    recording.sent("x-0", 0, 0)
    [batch] = recording.tail.batches()
    nothing = batch_.empty(batch.path, ("a", "b"))
    assert {key: _indices(part) for key, part in batches.cut(nothing)} == {"a": [], "b": []}
