"""Faults by hooks are measured, recorded and undone."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.external import cluster_file, external_cluster, kinds
from harness.cluster.external import survey as survey_
from harness.cluster.external.hooks import HookError
from harness.cluster.external.own_names import Removal
from harness.cluster.external.undo_record import UndoRecord, folder
from harness.cluster.observe import cluster_config, probe
from harness.cluster.observe.probe import Sign
from harness.cluster.observed_cluster import ObservedCluster
from model.capabilities.control_plane import Partition
from model.cluster_facts import ClusterFacts, TopicFacts
from model.plan import Plan
from tests.harness.cluster.external.conftest import surveyed

HOOKS = r"""
#!/bin/sh
# A node has a file for each of its states; a link is cut while its file exists.
test -e "broken-$1" && is_broken=yes
case $1 in
kill | stop) touch "$2.down" ;;
start) rm -f "$2.down" ;;
status)
    test ! -e "$2.off" || exit 151
    test ! -e "$2.paused" || exit 150
    test ! -e "$2.down"
    ;;
pause) touch "$2.paused" ;;
resume) rm -f "$2.paused" ;;
cut) touch "$2-$3.cut" ;;
heal) rm "$2-$3.cut" ;;
reach) test ! -e "$2-$3.cut" -a ! -e "$3-$2.cut" ;;
disconnect) touch "$2.off" ;;
reconnect) rm "$2.off" ;;
esac
status=$?
test -z "$is_broken" || { echo "$1 is broken"; exit 7; }
exit $status
"""
VERBS = (*cluster_file.VERBS,)


def text(*verbs: str) -> str:
    lines = [
        f'{verb} = ["sh", "hooks.sh", "{verb}", "{{node}}"'
        + (', "{peer}"]' if verb in cluster_file.PEER_VERBS else "]")
        for verb in verbs
    ]
    return "\n".join(["[hooks]", *lines])


@pytest.fixture
async def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Return a function that makes a cluster with hooks for these verbs, on scripted nodes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "hooks.sh").write_text(HOOKS)
    run = tmp_path / "run"
    run.mkdir()

    async def sign(address: Any, protocol: str, timeout_s: float) -> Sign:
        node = f"broker-{address.port - 9000}"
        if (tmp_path / f"{node}.down").exists():
            return "end"
        silent = (tmp_path / f"{node}.{state}" for state in ("paused", "off"))
        return "silence" if any(path.exists() for path in silent) else "answer"

    async def answers(address: Any, protocol: str, timeout_s: float) -> bool:
        return await sign(address, protocol, timeout_s) == "answer"

    async def remove(observed: Any, prefix: str) -> Removal:
        return Removal()

    monkeypatch.setattr(probe, "sign", sign)
    monkeypatch.setattr(probe, "answers", answers)
    monkeypatch.setattr(external_cluster, "remove_names", remove)
    monkeypatch.setattr(external_cluster, "GONE_S", 0.2)

    def made(*verbs: str, extra: str = "") -> Any:
        found = surveyed(tmp_path, extra + text(*(verbs or VERBS)))
        monkeypatch.setenv(cluster_file.SELECTED, str(found.loaded.path))
        monkeypatch.setattr(survey_, "_SURVEYS", {found.loaded.digest: found})
        cluster = kinds.kind_of(found)(Plan(), run, None)  # type: ignore[arg-type]
        cluster._record = UndoRecord(run / "hooks.log", (), cluster.prefix)
        return cluster

    cluster_file._loaded.cache_clear()
    yield made
    cluster_file._loaded.cache_clear()


def broken(where: Path) -> list[str]:
    """Return the states in which hooks have left nodes and links."""
    return [path.name for path in where.glob("broker-*")]


def pending() -> list[str]:
    [path] = folder().glob("*.json")
    return [call["what"] for call in json.loads(path.read_text())["undo"]]


async def test_kill_and_start(make: Any, tmp_path: Path) -> None:
    """A killed node does not run, and its start is recorded until it has been started."""
    cluster = make()
    await cluster.kill("broker-1")
    assert not await cluster.is_running("broker-1")
    assert await cluster.is_running("broker-2")
    assert pending() == ["start broker-1"]
    await cluster.start_node("broker-1")
    assert await cluster.is_running("broker-1")
    assert pending() == []


async def test_without_status_the_port_is_probed(make: Any) -> None:
    """A node whose port ends connections does not run; a silent one does."""
    cluster = make("kill", "start", "pause", "resume")
    await cluster.kill("broker-1")
    await cluster.pause("broker-2")
    assert not await cluster.is_running("broker-1")
    assert await cluster.is_running("broker-2")


async def test_stop(make: Any, tmp_path: Path) -> None:
    """A stop counts once the node has ended; a hook that fails raises with its last line."""
    cluster = make()
    assert await cluster.stop_node("broker-1") == 0
    await cluster.start_node("broker-1")
    (tmp_path / "broken-stop").touch()
    with pytest.raises(HookError, match=r"the hook stop broker-1 failed \(status 7\): stop is"):
        await cluster.stop_node("broker-1")
    assert pending() == ["start broker-1"]


async def test_pause(make: Any) -> None:
    """A node is paused if the run paused it and it leaves a probe unanswered."""
    cluster = make()
    assert not await cluster.is_paused("broker-1")
    await cluster.pause("broker-1")
    assert await cluster.is_paused("broker-1")
    assert pending() == ["resume broker-1"]
    await cluster.resume("broker-1")
    assert not await cluster.is_paused("broker-1")
    assert pending() == []


async def test_a_pause_without_effect(make: Any, tmp_path: Path) -> None:
    """A node that still answers is not paused, whatever the hook says; it is resumed anyway."""
    cluster = make()
    await cluster.pause("broker-1")
    (tmp_path / "broker-1.paused").unlink()
    assert not await cluster.is_paused("broker-1")
    assert pending() == ["resume broker-1"]


async def test_cuts_are_counted(make: Any) -> None:
    """A link is cut by a hook once, and healed with the last of the faults that cut it."""
    cluster = make()
    link = ("broker-1", "broker-2")
    assert cluster.has_link(*link)
    assert cluster.has_link("clients", "broker-1")
    assert not cluster.has_link("broker-1", "broker-1")
    assert await cluster.is_cut(*link) is False
    await cluster.cut(*link)
    await cluster.cut(*link)
    assert cluster.link_faults("broker-2", "broker-1").cut
    assert await cluster.is_cut(*link) is True
    await cluster.heal(*link)
    assert pending() == ["heal broker-1 broker-2"]
    await cluster.heal(*link)
    assert await cluster.is_cut(*link) is False
    assert not cluster.link_faults(*link).cut
    await cluster.cut("clients", "broker-1")
    await cluster.heal_all()
    assert pending() == []


async def test_a_cut_link_of_a_node_that_is_down_is_not_measured(make: Any) -> None:
    cluster = make()
    await cluster.kill("broker-2")
    assert await cluster.is_cut("broker-1", "broker-2") is None


async def test_disconnect(make: Any) -> None:
    """A disconnected node runs and does not answer."""
    cluster = make()
    await cluster.disconnect("broker-1")
    assert await cluster.is_disconnected("broker-1")
    assert cluster.link_faults("broker-1", "broker-2").disconnected
    await cluster.reconnect("broker-1")
    await cluster.reconnect("broker-1")
    assert not await cluster.is_disconnected("broker-1")
    assert pending() == []


async def test_stop_undoes_everything(
    make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One heal that fails is logged and stays recorded; the others are not affected."""
    cluster = make()
    await cluster.pause("broker-1")
    await cluster.kill("broker-2")
    await cluster.cut("broker-1", "broker-3")
    (tmp_path / "broken-resume").touch()
    await cluster.stop()
    assert broken(tmp_path) == []
    assert "the hook resume broker-1 failed (status 7): resume is broken" in caplog.text
    assert pending() == ["resume broker-1"]
    (tmp_path / "broken-resume").unlink()
    await cluster.stop()
    assert list(folder().glob("*.json")) == []


async def test_a_status_that_fails(make: Any, tmp_path: Path) -> None:
    """A hook that fails says nothing; a node that answers runs in any case."""
    cluster = make()
    (tmp_path / "broken-status").touch()
    assert await cluster.is_running("broker-1")
    (tmp_path / "broker-1.down").touch()
    with pytest.raises(HookError, match="must end with 0 or 1, not 7: status is broken"):
        await cluster.is_running("broker-1")


async def test_a_node_without_an_address(make: Any) -> None:
    """Its status says whether it is paused or disconnected; it runs in both cases."""
    cluster = make(extra="[nodes.zookeeper]\n")
    assert await cluster.answers("zookeeper")
    await cluster.pause("zookeeper")
    assert await cluster.is_paused("zookeeper")
    assert await cluster.is_running("zookeeper")
    assert not await cluster.answers("zookeeper")
    assert not await cluster.is_paused("broker-1")
    await cluster.resume("zookeeper")
    assert not await cluster.is_paused("zookeeper")
    await cluster.disconnect("zookeeper")
    assert await cluster.is_disconnected("zookeeper")
    await cluster.reconnect("zookeeper")
    assert not await cluster.is_disconnected("zookeeper")


async def test_names_on_the_brokers(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests name the run's own topics, and results have the names of the history."""
    cluster = make()
    prefix, asked = cluster.prefix, []

    async def reassign(self: Any, wanted: Any) -> dict[str, str]:
        asked.append(wanted)
        return dict.fromkeys(wanted, "NONE")

    async def elect(self: Any, keys: Any) -> dict[str, str]:
        asked.append(keys)
        return dict.fromkeys(keys, "NONE")

    async def coordinator(self: Any, of: str, name: str) -> str:
        asked.append(name)
        return "broker-1"

    async def partitions(self: Any) -> list[Partition]:
        return [
            Partition(key=key, replicas=(), leader=None, leader_epoch=0, isr=())
            for key in ("topic0-0", "__consumer_offsets-0")
        ]

    for function in (reassign, coordinator, partitions):
        monkeypatch.setattr(ObservedCluster, function.__name__, function)
    monkeypatch.setattr(ObservedCluster, "elect_preferred", elect)
    assert await cluster.reassign({"topic0-0": ["broker-1"]}) == {"topic0-0": "NONE"}
    assert await cluster.elect_preferred(["topic0-0"]) == {"topic0-0": "NONE"}
    assert await cluster.coordinator("group", "group0") == "broker-1"
    assert asked == [
        {f"{prefix}topic0-0": ["broker-1"]},
        [f"{prefix}topic0-0"],
        f"{prefix}group0",
    ]
    assert [each.key for each in await cluster.partitions()] == ["topic0-0"]
    connection = cluster.connection()
    assert (connection.bootstrap, connection.prefix) == ("h:9001", prefix)


async def test_facts_have_the_names_of_the_history(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = make()
    topic = TopicFacts(partitions=1, replication_factor=3)

    async def read(brokers: Any, topics: Any) -> ClusterFacts:
        assert topics == [f"{cluster.prefix}topic0", f"{cluster.prefix}topic1"]
        return ClusterFacts(
            topics={topics[0]: topic, "__consumer_offsets": topic},
            unread=(f"topic {topics[1]}: it does not exist",),
        )

    monkeypatch.setattr(cluster_config, "read", read)
    facts = await cluster.facts(["topic0", "topic1"])
    assert facts is not None
    assert set(facts.topics) == {"topic0", "__consumer_offsets"}
    assert facts.unread == ("topic topic1: it does not exist",)
