"""Micro-operations with a known name have its shape."""

from pathlib import Path
from typing import Any

import pytest

from checkers import history_file, table_builder
from harness.app import check
from model.history import BadHistory
from tests.checkers.test_wellformed import added, event, write

SHAPES: dict[str, list[Any]] = {
    "a send at a true offset": ["send", "x-0", [True, 1]],
    "a topic of no partitions": ["create-topic", "x", None],
    "a topic of true partitions": ["create-topic", "x", True],
    "a compacted topic of text partitions": ["create-compacted", "x", "2"],
    "a deletion of two topics": ["delete-topic", "x", "y"],
    "a delay without a time": ["delay", None, None],
    "a delay of a key": ["delay", "x-0", 5],
    "records in text": ["poll", {"x-0": ""}],
    "records in an object": ["poll", {"x-0": {}}],
    "a committed offset of 64 bits": ["committed", "g", {"x-0": 1 << 63}],
    "a delay of true": ["delay", None, True],
    "a freeze without a time": ["freeze", "g", None],
    "a freeze of a number": ["freeze", 7, 5],
    "a commit of a list": ["commit", "g", ["x-0"]],
    "a commit of text": ["commit", "g", "x-0"],
    "a commit of true": ["commit", "g", {"x-0": True}],
    "a commit of three numbers": ["commit", "g", {"x-0": [1, 2, 3]}],
    "a commit in a strange way": ["commit", "g", {"x-0": 1}, {}],
    "committed offsets with a true metadata": ["committed", "g", {"x-0": [1, True]}],
    "an assignment of a true generation": ["assigned", "g", True, {"x-0": 0}],
    "an assignment of a list": ["assigned", "g", 1, ["x-0"]],
    "a revocation of numbers": ["revoked", "g", 1, [7]],
    "an abort of something": ["abort", 1],
    "a catch-up at true": ["catch-up", "x-0", True, True],
    "a watermark of true": ["watermarks", "x-0", {"high": True}],
    "watermarks in a list": ["watermarks", "x-0", [1, 2, 3]],
    "a deletion of records before true": ["delete-records", "x-0", True],
    "a deletion of records before an offset below -1": ["delete-records", "x-0", -2],
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_micro_operation_has_its_shape(tmp_path: Path, case: str) -> None:
    """A known micro-operation with another shape is rejected."""
    lines = added(event(8, 9, "invoke", "txn", [SHAPES[case]]))
    with pytest.raises(BadHistory, match=r"line 9: .* does not have the shape"):
        history_file.read(write(tmp_path, lines), lambda done: None)


ONCE: dict[str, list[Any]] = {
    "an init with text": ["init", "t", "x"],
    "an init with a producer id alone": ["init", "t", [5]],
    "an init with a producer id of 64 bits": ["init", "t", [1 << 63, 0]],
    "an init with a true epoch": ["init", "t", [5, True]],
    "a subscription with a number for an option": ["subscribe", "g", ["x"], {"commit": 7}],
    "a subscription with too much": ["subscribe", "g", ["x"], {}, 1],
    "a leave of two groups": ["leave", "g", "h"],
}


@pytest.mark.parametrize("case", ONCE)
def test_what_a_process_does_once_has_its_shape(tmp_path: Path, case: str) -> None:
    """A ``subscribe``, ``init`` or ``leave`` with another shape is rejected, though it is kept as
    JSON."""
    lines = added(event(8, 9, "invoke", ONCE[case][0], [ONCE[case]]))
    path = write(tmp_path, lines)
    with pytest.raises(BadHistory, match=r"line 9: .* does not have the shape"):
        table_builder.of_history(history_file.read(path, lambda done: None), path)


def test_a_subscription_may_have_null_for_options(tmp_path: Path) -> None:
    """A subscription may have null for its options."""
    value = [["subscribe", "g", ["x"], None]]
    lines = added(
        event(8, 9, "invoke", "subscribe", value),
        event(9, 9, "ok", "subscribe", value),
        event(10, 9, "invoke", "poll", [["poll"]]),
        event(11, 9, "ok", "poll", [["assigned", "g", 1, {"x-0": 2}], ["poll", {}]]),
    )
    assert check.judge(write(tmp_path, lines), inline=True).valid is True
