"""Short descriptions of a history's events."""

from typing import Any

import pytest

from harness.app.report import event_text


def polled(*rows: list[Any]) -> list[Any]:
    return [["poll", {"a-0": list(rows)}]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([["send", "a-0", 5]], "a-0 ← 5"),
        ([["send", "a-0", 5], ["send", "a-0", 6], ["send", "a-0", 9]], "a-0 ← 5…6, 9"),
        ([["send", "a-0", [7, 5]], ["send", "a-0", [8, 6]]], "a-0 ← 5…6 at 7…8"),
        ([["send", "a-0", [7, 5]], ["send", "a-0", [9, 6]]], "a-0 ← 5 at 7, 6 at 9"),
        ([["send", "a-0", [None, 5]]], "a-0 ← [None, 5]"),
        ([["poll"]], ""),
        ([["poll", {"a-0": [[7, 5]], "a-1": [[1, 1]]}]], "a-0 → 5 at 7"),
        (polled(*([at, at + 100] for at in range(50))), "a-0 → 100…149 at 0…49"),
        (polled([19, 19], [20, 31], [21, 32]), "a-0 → 19 at 19, 31…32 at 20…21"),
        (polled(*([at, 2 * at] for at in range(50))),
         "a-0 → … 34 at 17, 36 at 18, 38 at 19, 40 at 20, 42 at 21, 44 at 22 …"),
        (polled(*([at, at + 100] for at in range(1000))),
         "a-0 → 100…499 at 0…399 …"),
        (polled(*([at, at + 100] for at in range(-990, 10))),
         "a-0 → … -290…109 at -390…9"),
        (polled(*([at, at + 100] for at in range(-500, 500))),
         "a-0 → … -80…319 at -180…219 …"),
        (polled(*([None, at] for at in range(1000))), "a-0 → 0…399 …"),
        (polled(*([at, 2 * at] for at in range(8))),
         "a-0 → … 10 at 5, 12 at 6, 14 at 7"),
        ([["poll", {"a-0": "?"}]], 'a-0 → "?"'),
        ([["catch-up", "a-0"]], "a-0 → read to the end"),
        ([["catch-up", "a-0", 7, 9]], "a-0 → position 7 of 9"),
        (["a-0", "a-1"], "a-0; a-1"),
        ([[1, 2]], "[1,2]"),
        ({"id": 1}, '{"id":1}'),
        (None, ""),
    ],
)  # fmt: skip
def test_described(value: Any, text: str) -> None:
    """An event is a short phrase; of a long poll, the records around the offset are shown."""
    assert event_text.described(value, "a-0", 20) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"phase": "apply", "targets": ["broker-2"],
          "effect": {"proved": True, "how": "broker-2: the process is gone"}},
         "applied to broker-2: the process is gone"),
        ({"phase": "heal", "targets": ["broker-2"], "effect": {"how": "broker-2 was started"}},
         "healed on broker-2: was started"),
        ({"phase": "heal", "targets": "controller"}, "healed on controller"),
        ({"phase": ["?"], "targets": None, "effect": 7}, ""),
        (["?"], '["?"]'),
        (None, ""),
    ],
)  # fmt: skip
def test_struck(value: Any, text: str) -> None:
    """An event of the nemesis is a short phrase, even if its value is malformed."""
    assert event_text.struck(value) == text


@pytest.mark.parametrize(
    ("value", "phrase"),
    [
        ({"node": "broker-2", "status": -11}, "broker-2: exited by itself with status -11"),
        ({"recovered": True}, "the cluster has recovered"),
        ({"recovered": False}, "the cluster has not recovered"),
    ],
)
def test_what_befell_the_test_is_told(value: dict[str, Any], phrase: str) -> None:
    """Crashes and recoveries, which are no faults, have phrases of their own."""
    assert event_text.struck(value) == phrase
