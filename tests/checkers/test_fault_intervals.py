"""Which faults may leave a former leader answering, and whose."""

from typing import Any

import pytest

from checkers.facts import Fault
from checkers.fault_intervals import interval
from checkers.kernels.faults import FaultInterval


def of(fault: str, targets: Any, options: Any = None) -> FaultInterval:
    return interval(Fault(7, fault, 10, 20, proved=True, how="", targets=targets, options=options))


@pytest.mark.parametrize(
    ("fault", "options", "misleads"),
    [
        ("pause", {"session": "longer"}, True),
        ("partition-one", {"from": ["brokers"]}, True),
        ("partition-clients", {"way": "cut"}, False),
        ("kill", {}, False),
        ("power-loss", {}, False),
        ("disk-full", {}, False),
        ("failed-directory", {"directory": 1}, False),
        ("drop-response", {"api": "OffsetCommit", "from": "clients", "or": ["Metadata"]}, False),
        ("hold-request", {"api": "LeaderAndIsr", "from": "controller"}, True),
        ("hold-request", {"api": "Fetch", "or": ["UpdateMetadata"]}, True),
        ("hold-request", None, True),
        ("a-new-fault", None, True),
    ],
)
def test_faults_that_keep_news_from_a_broker(fault: str, options: Any, misleads: bool) -> None:
    """A fault keeps news from a broker unless the broker ends by it or only clients are cut off."""
    assert of(fault, ["broker-1"], options).misleads == misleads


@pytest.mark.parametrize(
    ("fault", "targets", "nodes"),
    [
        ("pause", ["broker-1"], {"broker-1"}),
        ("partition-halves", ["broker-1", "broker-2"], {"broker-1", "broker-2"}),
        ("kill", ["broker-1"], {"broker-1"}),
        ("pause-zookeeper", ["zookeeper"], None),
        ("pause", "controller", None),  # its target was never resolved
        ("pause", [], None),
        ("hold-request", ["broker-1"], None),  # another message may have been caught
        ("elect-leaders", ["broker-1"], None),
    ],
)
def test_brokers_that_are_struck(fault: str, targets: Any, nodes: set[str] | None) -> None:
    """A fault concerns the brokers that it struck; where these are unknown, any broker."""
    assert of(fault, targets).nodes == (None if nodes is None else frozenset(nodes))


@pytest.mark.parametrize(
    ("fault", "options", "keys", "coordinators"),
    [
        ("pause", {"keys": ["x-0"]}, None, True),
        ("reassign", {"keys": ["x-0"]}, {"x-0"}, False),
        ("elect-leaders", {"internal": True}, set(), True),
        ("elect-leaders", {}, None, False),
        ("elect-apart", {"keys": ["x-0", "x-1"]}, {"x-0", "x-1"}, False),
    ],
)
def test_leaders_that_are_replaced(
    fault: str, options: Any, keys: set[str] | None, coordinators: bool
) -> None:
    """An operator's fault replaces the leaders of the partitions that it names."""
    found = of(fault, ["broker-1"], options)
    assert found.keys == (None if keys is None else frozenset(keys))
    assert found.coordinators == coordinators


@pytest.mark.parametrize(
    ("fault", "targets", "silences", "disconnects"),
    [
        ("pause", ["broker-1"], True, True),
        ("disconnect", ["broker-1"], True, True),
        ("disconnect", ["zookeeper"], False, True),
        ("partition-one", ["broker-1"], False, True),
        ("slow", ["broker-1"], False, False),
        ("elect-leaders", ["broker-1"], False, False),
        ("a-new-fault", ["broker-1"], False, True),
    ],
)
def test_what_a_fault_does_to_answers(
    fault: str, targets: Any, silences: bool, disconnects: bool
) -> None:
    """A paused broker gives no answer; one that keeps its connections hears of a new leader
    soon."""
    found = of(fault, targets)
    assert (found.silences, found.disconnects) == (silences, disconnects)


def test_only_an_end_makes_a_broker_forget() -> None:
    """Only the end of a broker makes it forget what it led."""
    ends = {fault: of(fault, ["broker-1"]).restarts for fault in ("kill", "restart", "pause")}
    assert ends == {"kill": True, "restart": True, "pause": False}
