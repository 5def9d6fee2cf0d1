"""A session ends after its timeout, and is given to no client without its password."""

from typing import Any

import pytest

from checkers.facts import Fault
from checkers.zookeeper import session_ends
from tests.checkers.zookeeper.conftest import Script, names, stat

MS = 1_000_000
TIMEOUT_MS = 8
"""In a script an event lasts a millisecond."""


def ended(script: Script, **value: Any) -> None:
    """The client learns that its session has expired."""
    script.call(0, "get", {"path": "/x"}, {"expired_ms": TIMEOUT_MS, **value}, "fail")


def wait(script: Script, events: int) -> None:
    """Let other processes work meanwhile."""
    for _ in range(events // 2):
        script.call(1, "get", {"path": "/x"}, {"data": "1", "stat": stat(1, 11)})


def found(script: Script, *faults: Fault) -> list[str]:
    return names(list(session_ends.early(script.history(faults))))


@pytest.mark.parametrize(("events", "expected"), [(0, ["zk-expired-early"]), (2, [])])
def test_a_session_expires_after_a_write(events: int, expected: list[str]) -> None:
    """It expires three, or five milliseconds after the write began; half of its timeout is four."""
    script = Script()
    script.call(0, "set", {"path": "/x", "data": "1"}, {"stat": stat(1, 11)})
    wait(script, events)
    ended(script)
    assert found(script) == expected


@pytest.mark.parametrize(
    ("f", "kind"), [("get", "ok"), ("set", "info"), ("set", "fail"), ("intrude", "ok")]
)
def test_what_shows_no_life(f: str, kind: str) -> None:
    """The leader need not hear of reads, and of writes without an acknowledgement."""
    script = Script()
    script.call(0, f, {"path": "/x", "data": "1"}, {"stat": stat(1, 11)}, kind)
    ended(script)
    assert found(script) == []


def test_an_end_counts_once() -> None:
    """Later operations of the same process show the same end."""
    script = Script()
    script.call(0, "set", {"path": "/x", "data": "1"}, {"stat": stat(1, 11)})
    ended(script)
    ended(script)
    assert found(script) == ["zk-expired-early"]


def test_other_sessions_live() -> None:
    """The write of another process shows nothing about this session."""
    script = Script()
    script.call(1, "set", {"path": "/x", "data": "1"}, {"stat": stat(1, 11)})
    ended(script)
    assert found(script) == []


@pytest.mark.parametrize(
    ("fault", "from_ms", "to_ms", "variant"),
    [
        ("clock-skew", 0, 1, "disturbed"),
        ("clock-skew", 0, None, "disturbed"),
        ("clock-skew", 9, 10, ""),
        ("kill", 0, 10, ""),
    ],
)
def test_a_skewed_clock_explains_an_early_end(
    fault: str, from_ms: int, to_ms: int | None, variant: str
) -> None:
    """Only a fault of the timers, and only one of that time."""
    script = Script()
    script.call(0, "set", {"path": "/x", "data": "1"}, {"stat": stat(1, 11)})
    ended(script)
    to_ns = None if to_ms is None else to_ms * MS
    active = Fault(1, fault, from_ms * MS, to_ns, True, "seen")
    [only] = session_ends.early(script.history([active]))
    assert only.variant == variant


@pytest.mark.parametrize(
    ("kind", "granted", "expected"),
    [("ok", True, ["zk-session-stolen"]), ("ok", False, []), ("fail", True, [])],
)
def test_a_session_is_stolen(kind: str, granted: bool, expected: list[str]) -> None:
    """A server gave it away, refused, or did not answer."""
    script = Script()
    script.call(0, "intrude", {"place": "/s", "victim": 7}, {"granted": granted}, kind)
    assert names(list(session_ends.stolen(script.history()))) == expected


def test_count() -> None:
    """Sessions with an acknowledged write are counted."""
    script = Script()
    for process in (0, 0, 1):
        script.call(process, "set", {"path": "/x", "data": "1"}, {"stat": stat(1, 11)})
    script.call(2, "get", {"path": "/x"}, {"data": "1", "stat": stat(1, 11)})
    assert session_ends.count(script.history()) == 2
