"""The nemesis as the interpreter sees it."""

import asyncio
import random
from typing import Any

import pytest

from model.op import NEMESIS, Op
from nemesis import kill, partition, pause, restart
from nemesis.runner import Nemesis
from tests.nemesis.conftest import FakeCluster

PACKAGES = (kill.PACKAGE, pause.PACKAGE, restart.PACKAGE, partition.PACKAGE)


def asked(
    fault: str, phase: str, targets: Any, number: int = 1, options: dict[str, Any] | None = None
) -> Op:
    value = {"id": number, "phase": phase, "targets": targets, "options": options or {}}
    return Op(index=0, time_ns=0, process=NEMESIS, type="invoke", f=fault, value=value)


@pytest.fixture
def nemesis(cluster: FakeCluster, rng: random.Random) -> Nemesis:
    return Nemesis(cluster, PACKAGES, rng)


async def test_apply_and_heal(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """The answers are info, with resolved targets and measured effects."""
    done = await nemesis.invoke(asked("kill", "apply", "controller"))
    assert (done.type, done.f, done.process) == ("info", "kill", NEMESIS)
    assert done.value["targets"] == ["broker-1"]
    assert done.value["effect"]["proved"] is True
    assert cluster.down == {"broker-1"}
    cluster.controls = "broker-2"
    healed = await nemesis.invoke(asked("kill", "heal", ["broker-1"]))
    assert healed.value["targets"] == ["broker-1"]
    assert healed.value["effect"]["proved"] is True
    assert cluster.down == set()


async def test_options_reach_the_fault(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """What the schedule says is what is done."""
    await nemesis.invoke(
        asked("partition-one-way", "apply", ["broker-1"], options={"from": ["zookeeper"]})
    )
    assert +cluster.cuts == {("broker-1", "zookeeper"): 1}


async def test_heal_all_mends_everything(nemesis: Nemesis, cluster: FakeCluster) -> None:
    """Faults that were never healed, and what a failed one left behind, are mended."""
    await nemesis.invoke(asked("kill", "apply", ["broker-1"], 1))
    await nemesis.invoke(asked("pause", "apply", ["broker-2"], 2))
    await nemesis.invoke(asked("partition-one", "apply", ["broker-3"], 3))
    cluster.cuts["broker-1", "zookeeper"] = 2
    cluster.paused.add("zookeeper")
    await nemesis.heal_all()
    assert (cluster.down, cluster.paused, +cluster.cuts) == (set(), set(), {})


async def test_failed_mend_does_not_spare_the_rest(
    nemesis: Nemesis, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """When one node cannot be started, the links are healed all the same."""
    await nemesis.invoke(asked("partition-one", "apply", ["broker-3"], 1))
    await nemesis.invoke(asked("kill", "apply", ["broker-1"], 2))

    async def broken(node: str) -> None:
        raise OSError("disk full")

    cluster.start_node = broken  # type: ignore[method-assign]
    await nemesis.heal_all()
    assert not +cluster.cuts
    assert "kill 2 could not be healed" in caplog.text


async def test_healing_what_is_whole_changes_nothing(nemesis: Nemesis) -> None:
    """A heal without its fault is answered, not carried out."""
    done = await nemesis.invoke(asked("kill", "heal", ["broker-1"]))
    assert done.value["effect"] == {"proved": False, "how": "not broken"}


async def test_unknown_fault(nemesis: Nemesis) -> None:
    """A fault that no package has is an error."""
    with pytest.raises(ValueError, match="called flood"):
        await nemesis.invoke(asked("flood", "apply", []))


def test_cluster_must_offer_what_is_needed(rng: random.Random) -> None:
    """A package that the cluster cannot serve is refused at once."""
    with pytest.raises(ValueError, match="kill needs a cluster that offers CanKill"):
        Nemesis(object(), PACKAGES, rng)


async def test_a_mend_that_is_not_proved_can_be_asked_for_again(
    nemesis: Nemesis, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as broken until it is proved to be whole."""
    await nemesis.invoke(asked("pause", "apply", ["broker-2"]))
    with monkeypatch.context() as deaf:
        deaf.setattr(cluster, "resume", lambda node: asyncio.sleep(0))
        deaf.setattr(pause, "SETTLE_S", 0.01)
        done = await nemesis.invoke(asked("pause", "heal", ["broker-2"]))
    assert done.value["effect"]["proved"] is False
    done = await nemesis.invoke(asked("pause", "heal", ["broker-2"]))
    assert done.value["effect"] == {"proved": True, "how": "broker-2: resumed"}
    assert cluster.paused == set()
