"""A session never sees an older state than before, and ``sync`` is held to its promise."""

import pytest

from checkers.facts import Fault
from checkers.zookeeper import sessions
from tests.checkers.zookeeper.conftest import Script, fault, names, stat

R = {"path": "/r"}


def wrote(script: Script, process: int, version: int) -> None:
    asked = {**R, "data": str(version)}
    script.call(process, "set", asked, {"stat": stat(version, 10 + version)})


def read(script: Script, process: int, version: int, zxid: int, **asked: bool) -> None:
    shown = {"data": str(version), "stat": stat(version, 10 + version), "zxid": zxid}
    script.call(process, "get", {**R, **asked}, shown)


@pytest.mark.parametrize(("zxid", "expected"), [(11, ["zk-nonmonotonic-session"]), (12, [])])
def test_the_zxid_of_replies_goes_back(zxid: int, expected: list[str]) -> None:
    """The second reply to the session has a smaller zxid than the first one, or the same."""
    script = Script()
    script.call(0, "get", R, {"data": None, "stat": None, "zxid": 12})
    script.call(0, "get", R, {"data": None, "stat": None, "zxid": zxid})
    assert names(list(sessions.zxids(script.history()))) == expected


def test_another_session_may_be_behind() -> None:
    """Replies to two sessions are not compared, and a write may be read later by another one."""
    script = Script()
    wrote(script, 0, 1)
    wrote(script, 0, 2)
    read(script, 1, 1, 11)
    history = script.history()
    assert list(sessions.zxids(history)) == []
    assert list(sessions.reads(history)) == []


def test_a_session_does_not_read_its_own_write() -> None:
    """The session wrote version 2, and reads version 1."""
    script = Script()
    wrote(script, 0, 1)
    wrote(script, 0, 2)
    read(script, 0, 1, 12)
    assert names(list(sessions.reads(script.history()))) == ["zk-read-your-writes"]


def test_a_session_reads_an_older_state_again() -> None:
    """The session read version 2, and then version 1."""
    script = Script()
    read(script, 0, 2, 12)
    read(script, 0, 1, 12)
    assert names(list(sessions.reads(script.history()))) == ["zk-nonmonotonic-read"]


def test_a_session_reads_less_than_a_reply_covered() -> None:
    """A reply about another znode had a zxid after version 2 of this one."""
    script = Script()
    wrote(script, 1, 1)
    wrote(script, 1, 2)
    script.call(0, "get", {"path": "/other"}, {"data": None, "stat": None, "zxid": 12})
    read(script, 0, 1, 12)
    assert names(list(sessions.reads(script.history()))) == ["zk-stale-read"]


def test_a_deleted_znode_is_absent() -> None:
    """A znode that the session has seen may be absent only if it may have been deleted."""
    script = Script()
    wrote(script, 0, 1)
    script.call(0, "get", R, {"data": None, "stat": None})
    assert names(list(sessions.reads(script.history()))) == ["zk-read-your-writes"]
    script.call(1, "delete", R, kind="info", error="connection-loss")
    assert list(sessions.reads(script.history())) == []


@pytest.mark.parametrize(
    ("faults", "variant"),
    [([], ""), ([fault(0, 1)], "disturbed"), ([fault(10**12, None)], "")],
)
def test_a_stale_read_after_sync(faults: list[Fault], variant: str) -> None:
    """The read shows less than was acknowledged before; a fault may excuse it."""
    script = Script()
    wrote(script, 0, 1)
    wrote(script, 0, 2)
    read(script, 1, 1, 12, sync=True)
    (found,) = sessions.synced(script.history(faults))
    assert (found.anomaly, found.variant) == ("zk-stale-sync-read", variant)


def test_a_fresh_read_after_sync() -> None:
    """The read shows the last write that was acknowledged before it began."""
    script = Script()
    wrote(script, 0, 1)
    begun = script.invoke(1, "get", path="/r", sync=True)
    wrote(script, 0, 2)
    script.complete(begun, data="1", stat=stat(1, 11))
    read(script, 2, 1, 12)  # without sync
    assert list(sessions.synced(script.history())) == []


def test_a_write_is_missing_after_the_recovery() -> None:
    """A final read after ``sync`` has no excuse, unless the servers did not recover."""
    script = Script()
    wrote(script, 0, 1)
    wrote(script, 0, 2)
    read(script, 1, 1, 12, sync=True, final=True)
    faults = [fault(0, 1)]
    assert names(list(sessions.synced(script.history(faults)))) == ["zk-lost-write"]
    unsettled = script.history(faults, recovered=False)
    assert names(list(sessions.synced(unsettled))) == ["zk-stale-sync-read"]
