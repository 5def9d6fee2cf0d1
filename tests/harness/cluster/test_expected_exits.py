"""Which unexpected exits a fault explains."""

import pytest

from broker_impl.node.exit_status import BAD_CONFIG, FAILED, STORAGE_FAILED
from harness.cluster.expected_exits import AFTER_S, ExpectedExits, Reason
from harness.cluster.node import Exit

GAVE_UP = Exit(
    "broker-1", STORAGE_FAILED, "ERROR broker_impl: the broker stops because its disk failed"
)
KILLED = Exit("broker-1", -9, "INFO something")


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("reason", "end", "oom_killed", "covered"),
    [
        ("disk", GAVE_UP, False, True),
        ("disk", KILLED, False, False),
        ("disk", KILLED, True, False),
        ("disk", Exit("broker-1", FAILED, "AssertionError: offsets only grow"), False, False),
        ("disk", Exit("broker-1", FAILED, "KeyError: 7"), False, False),
        ("disk", Exit("broker-1", FAILED, "struct.error: unpack requires 4 bytes"), False, False),
        ("disk", Exit("broker-1", BAD_CONFIG, "no such setting"), False, False),
        ("disk", Exit("broker-2", STORAGE_FAILED, GAVE_UP.last_line), False, False),
        ("memory", KILLED, True, True),
        ("memory", KILLED, False, False),
        ("memory", GAVE_UP, False, False),
    ],
)
def test_a_fault_explains_one_kind_of_end(
    reason: Reason, end: Exit, oom_killed: bool, covered: bool
) -> None:
    """A full disk explains an end by failed storage, scarce memory one by the OOM killer.

    Both do so only on the node with the fault.
    """
    expected = ExpectedExits(Clock())
    expected.begin("broker-1", reason)
    assert expected.cover(end, oom_killed=oom_killed) is covered


def test_each_system_has_its_own_status_of_failed_storage() -> None:
    """Apache Kafka ends with 1 when its last log directory fails, for which nothing else is 74."""
    expected = ExpectedExits(Clock(), storage_failed_status=1)
    expected.begin("broker-1", "disk")
    assert expected.cover(Exit("broker-1", 1, "all log dirs have failed"), oom_killed=False)
    assert not expected.cover(GAVE_UP, oom_killed=False)


def test_an_excuse_holds_a_moment_longer_than_its_fault() -> None:
    """A fault explains an end up to AFTER_S after its own; one that never began explains none."""
    clock = Clock()
    expected = ExpectedExits(clock)
    expected.end("broker-1", "disk")
    assert not expected.cover(GAVE_UP, oom_killed=False)
    expected.begin("broker-1", "disk")
    assert expected.expects("broker-1", "disk")
    expected.end("broker-1", "disk")
    assert not expected.expects("broker-1", "disk")
    clock.now_s += AFTER_S
    assert expected.cover(GAVE_UP, oom_killed=False)
    expected.end("broker-1", "disk")
    clock.now_s += 0.1
    assert not expected.cover(GAVE_UP, oom_killed=False), "ending it twice does not prolong it"
