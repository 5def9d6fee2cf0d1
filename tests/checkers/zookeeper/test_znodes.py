"""Versions, transactions and real time order the writes of znodes in the same way."""

import pytest

from checkers.zookeeper import znodes
from tests.checkers.zookeeper.conftest import Script, names, stat

R = {"path": "/r"}


def wrote(
    script: Script, process: int, data: str, version: int, mzxid: int, condition: int = -1
) -> None:
    """A write that was acknowledged."""
    asked = {**R, "data": data, "version": condition}
    script.call(process, "set", asked, {"stat": stat(version, mzxid)})


def read(script: Script, process: int, data: str, version: int, mzxid: int) -> None:
    """A read that was answered."""
    script.call(process, "get", R, {"data": data, "stat": stat(version, mzxid)})


def test_two_writes_of_one_version_are_a_lost_update() -> None:
    """Both writes were acknowledged with version 1."""
    script = Script()
    wrote(script, 0, "a", 1, 5)
    wrote(script, 1, "b", 1, 6)
    (found,) = znodes.updates(script.history())
    assert found.anomaly == "zk-lost-update"
    assert found.ops == (1, 3)


def test_two_versions_are_no_lost_update() -> None:
    """The second write has the next version, and a read shows the same."""
    script = Script()
    wrote(script, 0, "a", 1, 5)
    wrote(script, 1, "b", 2, 6)
    read(script, 0, "b", 2, 6)
    assert names(list(znodes.updates(script.history()))) == []


def test_a_new_znode_begins_with_version_0_again() -> None:
    """A znode that was created again has the same versions with another ``czxid``."""
    script = Script()
    wrote(script, 0, "a", 1, 5)
    script.call(0, "set", {**R, "data": "b"}, {"stat": stat(1, 9, czxid=8)})
    assert names(list(znodes.updates(script.history()))) == []


def test_two_additions_of_one_version_are_a_lost_update() -> None:
    """Additions to a counter are writes, too."""
    script = Script()
    for process in (0, 1):
        script.call(process, "add", {**R, "delta": 1}, {"total": 1, "stat": stat(1, 5 + process)})
    assert names(list(znodes.updates(script.history()))) == ["zk-lost-update"]


@pytest.mark.parametrize(("data", "mzxid"), [("b", 5), ("a", 6)])
def test_two_answers_about_one_version_differ(data: str, mzxid: int) -> None:
    """Version 1 was written as "a" by transaction 5, and is read as something else."""
    script = Script()
    wrote(script, 0, "a", 1, 5)
    read(script, 1, data, 1, mzxid)
    assert names(list(znodes.updates(script.history()))) == ["zk-divergence"]


def test_a_later_version_has_a_smaller_transaction() -> None:
    """Version 2 was written by a transaction before that of version 1."""
    script = Script()
    wrote(script, 0, "a", 1, 9)
    wrote(script, 1, "b", 2, 7)
    assert names(list(znodes.updates(script.history()))) == ["zk-version-order"]


def test_a_write_on_condition_of_another_version() -> None:
    """A condition of version 3 must make version 4; any version satisfies -1."""
    script = Script()
    wrote(script, 0, "a", 4, 5, condition=3)
    wrote(script, 0, "b", 9, 6)
    assert names(list(znodes.updates(script.history()))) == []
    wrote(script, 0, "c", 12, 7, condition=10)
    assert names(list(znodes.updates(script.history()))) == ["zk-wrong-version"]


def other(script: Script, process: int, path: str, mzxid: int) -> None:
    script.call(process, "set", {"path": path, "data": str(mzxid)}, {"stat": stat(1, mzxid)})


def test_transactions_against_real_time() -> None:
    """A write that began after another one was acknowledged has the smaller zxid, elsewhere."""
    script = Script()
    other(script, 0, "/a", 9)
    other(script, 1, "/b", 7)
    (found,) = znodes.real_time(script.history())
    assert found.anomaly == "zk-realtime-order"
    assert found.ops == (1, 3)


def test_concurrent_writes_have_any_order() -> None:
    """Both writes are invoked before one is acknowledged."""
    script = Script()
    a = script.invoke(0, "set", path="/a", data="1")
    b = script.invoke(1, "set", path="/b", data="2")
    script.complete(a, stat=stat(1, 9))
    script.complete(b, stat=stat(1, 7))
    assert list(znodes.real_time(script.history())) == []


def test_data_that_nobody_wrote() -> None:
    """A read returns data that is in no write."""
    script = Script()
    wrote(script, 0, "a", 1, 5)
    read(script, 1, "b", 1, 5)
    assert "zk-garbage-read" in names(list(znodes.origins(script.history())))


def test_data_that_was_read_before_it_was_written() -> None:
    """The write is invoked after the read has ended."""
    script = Script()
    read(script, 1, "a", 1, 5)
    wrote(script, 0, "a", 1, 5)
    assert names(list(znodes.origins(script.history()))) == ["zk-garbage-read"]


@pytest.mark.parametrize(("kind", "expected"), [("fail", ["zk-aborted-read"]), ("info", [])])
def test_data_of_a_rejected_write(kind: str, expected: list[str]) -> None:
    """A rejected write must never be read; one of unknown outcome may be."""
    script = Script()
    script.call(0, "set", {**R, "data": "a"}, kind=kind, error="bad-version")
    read(script, 1, "a", 1, 5)
    assert names(list(znodes.origins(script.history()))) == expected
