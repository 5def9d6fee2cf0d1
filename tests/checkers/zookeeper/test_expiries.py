"""A session expires no earlier than its timeout after its last certain sign of life."""

from typing import Any

import pytest

from checkers.facts import Fault
from checkers.zookeeper import expiries
from model.op import Op
from tests.checkers.zookeeper.conftest import Script, names

E = {"path": "/e", "place": "/"}
CREATE = {**E, "data": "", "ephemeral": True}
TIMEOUT_MS = 100
"""An event of a script lasts a millisecond."""


def found(script: Script, *faults: Fault) -> list[str]:
    return names(list(expiries.early(script.history(faults))))


def owner(script: Script, alive_ms: int = 0, **more: Any) -> None:
    """Process 0 creates the znode, and its session shows a sign of life then."""
    life = {"timeout_ms": TIMEOUT_MS, "alive_ms": alive_ms}
    script.call(0, "create", CREATE, {"created": "/e", "zxid": 20, **life, **more})


def gone(script: Script, zxid: int = 30, wait: int = 0, **asked: Any) -> Op:
    """Process 1 sees that the znode is gone, after that many milliseconds."""
    for number in range(wait):
        script.invoke(100 + number, "get", path="/x")
    return script.call(1, "get", {**E, **asked}, {"data": None, "stat": None, "zxid": zxid})


@pytest.mark.parametrize(("wait", "expected"), [(50, True), (96, True), (97, False), (150, False)])
def test_a_znode_is_gone(wait: int, expected: bool) -> None:
    """The read ends sooner than a timeout after the sign of life, or just not."""
    script = Script()
    owner(script)
    gone(script, wait=wait)
    assert found(script) == (["zk-session-expired-early"] if expected else [])


def test_the_last_sign_of_life_counts() -> None:
    """A later answer moves the earliest end; it may have been sent before its invocation."""
    script = Script()
    owner(script)
    gone(script, wait=120)
    assert found(script) == []
    late = Script()
    owner(late)
    for number in range(60):
        late.invoke(100 + number, "get", path="/x")
    life = {"timeout_ms": TIMEOUT_MS, "alive_ms": -20}
    late.call(0, "get", {"path": "/x"}, {"data": None, "stat": None, "zxid": 20, **life})
    for number in range(60):
        late.invoke(200 + number, "get", path="/x")
    gone(late)
    assert found(late) == ["zk-session-expired-early"]


def test_a_server_that_is_behind_shows_no_end() -> None:
    """The server of the reader has not applied the creation yet."""
    script = Script()
    owner(script)
    gone(script, zxid=19)
    assert found(script) == []


def test_an_abandoned_session_lives_on() -> None:
    """A client that is gone without an end leaves its session for a whole timeout."""
    script = Script()
    owner(script)
    script.call(0, "abandon", {"place": "/"}, kind="info", error="crash")
    gone(script)
    assert found(script) == ["zk-session-expired-early"]


@pytest.mark.parametrize(
    ("f", "kind", "error"),
    [
        ("close", "ok", None),
        ("close", "info", "the end of the session was not confirmed"),
        ("create", "info", "connection-loss"),  # its client closes the session
        ("create", "fail", "client-crash: no"),
    ],
)
def test_a_session_that_its_client_may_have_ended(f: str, kind: str, error: str | None) -> None:
    """A session that was closed, or whose client was replaced, may end at once."""
    script = Script()
    owner(script)
    script.call(0, f, {"path": "/other", "place": "/", "data": ""}, kind=kind, error=error)
    gone(script)
    assert found(script) == []


def test_a_znode_that_a_client_may_have_deleted() -> None:
    """The end of the session is not the only cause."""
    script = Script()
    owner(script)
    script.call(2, "delete", E, kind="info", error="connection-loss")
    gone(script)
    assert found(script) == []


def test_final_reads_follow_the_end_of_all_sessions() -> None:
    """All clients are closed before the final reads."""
    script = Script()
    owner(script)
    gone(script, final=True, sync=True)
    assert found(script) == []


@pytest.mark.parametrize(("silent_ms", "expected"), [(99, True), (100, False), (500, False)])
def test_a_server_reports_the_end(silent_ms: int, expected: bool) -> None:
    """The client was silent for less than the timeout, or just not."""
    script = Script()
    life = {"timeout_ms": TIMEOUT_MS, "alive_ms": -silent_ms, "silent_ms": silent_ms}
    script.call(0, "get", E, life, kind="fail", error="the session is expired")
    assert found(script) == (["zk-session-expired-early"] if expected else [])


def test_a_session_is_reported_once() -> None:
    """However many reads show its end."""
    script = Script()
    owner(script)
    gone(script)
    gone(script)
    assert found(script) == ["zk-session-expired-early"]


@pytest.mark.parametrize(
    ("kind", "from_ns", "variant"),
    [
        ("kill", 0, "disturbed"),
        ("clock-skew", 0, "disturbed"),
        ("partition-clients", 0, ""),
        ("kill", 10**12, ""),
        ("kill", -9 * 10**9, "disturbed"),
        ("kill", -12 * 10**9, ""),
    ],
)
def test_a_fault_may_have_kept_a_sign_of_life_from_the_leader(
    kind: str, from_ns: int, variant: str
) -> None:
    """Only faults of the servers, and only in that time."""
    script = Script()
    owner(script)
    gone(script)
    near = Fault(1, kind, from_ns, from_ns + 1, True, "")
    [only] = expiries.early(script.history([near]))
    assert only.variant == variant


def test_histories_without_signs_of_life() -> None:
    """Older histories do not record them: nothing is claimed, and nothing counted."""
    script = Script()
    script.call(0, "create", CREATE, {"created": "/e", "zxid": 20})
    gone(script)
    assert found(script) == []
    assert expiries.count(script.history()) == 0
