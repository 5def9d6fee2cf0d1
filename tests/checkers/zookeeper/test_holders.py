"""A lock or an office has one holder at a time, as far as fencing tokens show."""

from typing import Any

import pytest

from checkers.zookeeper import holders
from model.op import Op
from tests.checkers.zookeeper.conftest import Script, names, stat

LOCK = {"path": "/l"}


def acquire(script: Script, process: int, token: int) -> None:
    node = f"/l/n-{token:010}"
    script.call(process, "acquire", LOCK, {"node": node, "token": token})


def use(script: Script, process: int, token: int, mzxid: int = 50, kind: str = "ok") -> None:
    asked = {**LOCK, "token": token, "resource": "/r"}
    script.call(process, "guard", asked, {"stat": stat(1, mzxid)}, kind)


def release(script: Script, process: int, token: int) -> None:
    script.call(process, "release", {**LOCK, "token": token})


def found(script: Script) -> list[str]:
    return names(list(holders.exclusion(script.history())))


def test_one_holder_after_the_other() -> None:
    """Each holder releases the lock before the next one has it."""
    script = Script()
    for token in (1, 2, 3):
        acquire(script, token, token)
        use(script, token, token)
        release(script, token, token)
    assert found(script) == []


@pytest.mark.parametrize(
    ("kind", "expected"), [("ok", ["zk-mutual-exclusion"]), ("info", []), ("fail", [])]
)
def test_two_holders_at_once(kind: str, expected: list[str]) -> None:
    """The first holder proves that it still is one after the second one has the lock.

    Without an answer its znode may have been gone, because its session had expired.
    """
    script = Script()
    acquire(script, 0, 1)
    acquire(script, 1, 2)
    use(script, 0, 1, kind=kind)
    assert found(script) == expected


def test_a_proof_that_began_before() -> None:
    """A release that was invoked before the next holder had the lock is concurrent with it."""
    script = Script()
    acquire(script, 0, 1)
    releasing = script.invoke(0, "release", **LOCK, token=1)
    acquire(script, 1, 2)
    script.complete(releasing)
    assert found(script) == []


def test_two_holders_with_one_token() -> None:
    """A token belongs to one holder."""
    script = Script()
    acquire(script, 0, 1)
    release(script, 0, 1)
    acquire(script, 1, 1)
    assert found(script) == ["zk-mutual-exclusion"]


def test_different_locks() -> None:
    """Two locks have two holders."""
    script = Script()
    acquire(script, 0, 1)
    script.call(1, "acquire", {"path": "/other"}, {"node": "/other/n", "token": 2})
    use(script, 0, 1)
    assert found(script) == []


def lead(script: Script, process: int, epoch: int) -> Op:
    asked: dict[str, Any] = {"path": "/o", "epoch": epoch, "resource": "/r"}
    return script.call(process, "lead", asked, {"stat": stat(epoch, 50)})


@pytest.mark.parametrize(("epoch", "expected"), [(1, ["zk-mutual-exclusion"]), (2, [])])
def test_a_former_leader_leads(epoch: int, expected: list[str]) -> None:
    """A leader of epoch 1 writes after epoch 2 was elected."""
    script = Script()
    for each in (1, 2):
        script.call(each, "elect", {"path": "/o"}, {"epoch": each, "stat": stat(each, each)})
    lead(script, epoch, epoch)
    assert found(script) == expected


@pytest.mark.parametrize(("mzxid", "expected"), [(60, ["zk-fencing"]), (40, [])])
def test_writes_against_their_tokens(mzxid: int, expected: list[str]) -> None:
    """The write with the smaller token takes effect after, or before, that with the larger one."""
    script = Script()
    use(script, 1, 2, 50)
    use(script, 0, 1, mzxid)
    assert names(list(holders.fencing(script.history()))) == expected
