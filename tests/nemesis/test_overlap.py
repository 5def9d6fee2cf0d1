"""Every pair of faults that overlap on a link or a node, healed in both orders."""

import itertools
import random
from typing import Any, NamedTuple

import pytest

from model.op import NEMESIS, Op
from nemesis import (
    directories,
    disconnect,
    disk,
    kill,
    packets,
    partition,
    pause,
    resource_limits,
    restart,
    slow_disk,
    slow_link,
    zookeeper,
)
from nemesis.runner import Nemesis
from tests.nemesis.conftest import FakeCluster

pytestmark = pytest.mark.usefixtures("impatient")

MODULES = (
    *(kill, pause, restart, zookeeper, partition, slow_link, disconnect, packets),
    *(disk, resource_limits, slow_disk, directories),
)
PACKAGES = tuple(module.PACKAGE for module in MODULES)
ONE = ["broker-1"]
PROBES_MAX = 2
"""How often one step may probe a link: no step waits for an answer that cannot come."""


class Fault(NamedTuple):
    """A fault of the table, with a title that names its test."""

    title: str
    fault: str
    targets: list[str]
    options: dict[str, Any] = {}  # noqa: RUF012 - a table's row is never changed


TABLE = (
    Fault("cut", "partition-one", ONE),
    Fault("closed", "partition-one", ONE, {"way": "down"}),
    Fault("cut-out", "partition-one-way", ONE),
    Fault("cut-in", "partition-one-way", ONE, {"direction": "in"}),
    Fault("cut-clients", "partition-clients", ONE),
    Fault("cut-zookeeper", "partition-zookeeper", ONE),
    Fault("slow", "slow", ONE, {"latency_s": 0.05, "from": ["brokers"]}),
    Fault("slower", "slow", ["broker-1", "broker-2"], {"latency_s": 0.3, "from": ["brokers"]}),
    Fault("very-slow", "slow", ONE, {"latency_s": 1.5, "from": ["brokers", "zookeeper"]}),
    Fault("disconnect", "disconnect", ONE),
    Fault("packets", "drop-packets", ONE, {"share": 0.2}),
    Fault("kill", "kill", ONE),
    Fault("kill-two", "kill", ["broker-1", "broker-2"]),
    Fault("pause", "pause", ONE),
    Fault("pause-all", "pause", ["broker-1", "broker-2", "broker-3"]),
    Fault("restart", "restart", ONE),
    Fault("kill-zookeeper", "kill-zookeeper", ["zookeeper"]),
    Fault("pause-zookeeper", "pause-zookeeper", ["zookeeper"]),
    Fault("disk", "disk-full", ONE),
    Fault("cpu", "squeeze-cpu", ONE, {"cpus": 0.05}),
    Fault("slow-disk", "slow-disk", ONE, {"seconds": 0.005}),
    Fault("directory", "failed-directory", ONE, {"directory": 1}),
)
ONCE = ("disk-full", "squeeze-cpu", "slow-disk", "failed-directory")
"""Faults that cannot be proved twice on one node; their own tests say so."""


ENDS_PROCESSES = ("kill", "restart", "kill-zookeeper")
RESTARTS = ("failed-directory",)
"""Faults whose heal ends a process."""


class Struck:
    """A cluster in memory with a nemesis."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.nemesis = Nemesis(self.cluster, PACKAGES, random.Random(3))

    async def ask(self, number: int, phase: str, fault: Fault, targets: Any) -> dict[str, Any]:
        """Send a request to the nemesis and return its answer; counts of probes start at zero."""
        self.cluster.probes.clear()
        value = {"id": number, "phase": phase, "targets": targets, "options": fault.options}
        asked = Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f=fault.fault, value=value)
        answer: dict[str, Any] = (await self.nemesis.invoke(asked)).value
        return answer

    @property
    def most_probed(self) -> int:
        """How often the last request probed the link that it probed most."""
        return max(self.cluster.probes.values(), default=0)

    def state(self) -> dict[str, Any]:
        """The faults of the cluster."""
        cluster = self.cluster
        return {
            "down": set(cluster.down),
            "paused": set(cluster.paused),
            "cuts": +cluster.cuts,
            "refused": +cluster.refused,
            "latency": {way: max(each) for way, each in cluster.latency.items()},
            "off": set(cluster.off),
            "dropping": set(cluster.dropped),
            "free": dict(cluster.free),
            "limits": dict(cluster.limits),
            "disks": dict(cluster.disk_s),
            "directories": dict(cluster.failed),
            "rates": dict(cluster.rates),
        }


async def alone(fault: Fault, targets: Any) -> dict[str, Any]:
    """Return the faults of a cluster that only this fault affects."""
    struck = Struck()
    await struck.ask(1, "apply", fault, targets)
    return struck.state()


@pytest.mark.parametrize("one", TABLE, ids=[fault.title for fault in TABLE])
async def test_each_heals_its_own(one: Fault) -> None:
    """Healing a fault leaves exactly the effects of the other one.

    Each fault is proved to have had an effect and to be healed at the first attempt, and no step
    waits for an answer that cannot come.
    """
    failed = []
    for other, first_healed in itertools.product(TABLE, (1, 2)):
        if one is other and one.fault in ONCE:
            continue
        try:
            await overlapped(one, other, first_healed)
        except AssertionError as error:
            failed.append(f"{other.title}, fault {first_healed} healed first: {error}")
    assert not failed, "\n".join(failed)


async def overlapped(one: Fault, other: Fault, first_healed: int) -> None:
    """Apply and heal two faults, and check everything that must hold in between."""
    struck = Struck()
    whole = struck.state()
    faults = {1: one, 2: other}
    answers = {n: await struck.ask(n, "apply", fault, fault.targets) for n, fault in faults.items()}
    assert answers[1]["effect"]["proved"], answers[1]
    second = 3 - first_healed
    healed = await struck.ask(first_healed, "heal", faults[first_healed], None)
    assert healed["effect"]["proved"], healed
    assert struck.most_probed <= PROBES_MAX, struck.cluster.probes
    expected = await alone(faults[second], answers[second]["targets"])
    ends = RESTARTS if first_healed == 1 else (*RESTARTS, *ENDS_PROCESSES)
    if faults[first_healed].fault in ends:
        # A new process is not paused.
        expected["paused"] -= set(answers[first_healed]["targets"])
    assert struck.state() == expected
    if {one.fault, other.fault} <= {"kill-zookeeper", "pause-zookeeper"}:
        assert answers[2]["effect"]["proved"] or one.fault == "kill-zookeeper"
    elif not answers[2]["effect"]["proved"] and second == 2:
        again = await struck.ask(2, "measure", other, None)
        assert again["effect"]["proved"], (answers[2], again)
    healed = await struck.ask(second, "heal", faults[second], None)
    assert healed["effect"]["proved"], healed
    assert struck.most_probed <= PROBES_MAX, struck.cluster.probes
    assert struck.state() == whole
