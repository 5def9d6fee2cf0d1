"""Servers in a simulated world elect, replicate, lose their leader, and bring others up to date."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from broker_impl.zookeeper import snapshot_file
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NodeExists
from broker_impl.zookeeper.quorum import leader as leaders
from broker_impl.zookeeper.quorum import learner_link
from broker_impl.zookeeper.quorum.learner_link import LearnerLink
from broker_impl.zookeeper.tree import Database
from harness.simulation.world import World
from tests.broker_impl.zookeeper.quorum.simulated_ensemble import (
    TICK_MS,
    SimulatedEnsemble,
    insist,
)


@pytest.fixture
def world() -> Iterator[World]:
    with World(seed=7) as world:
        yield world


async def until(condition: Callable[[], object], limit_s: float = 60) -> None:
    """Let virtual time pass until the condition holds."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(TICK_MS / 2000)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How leaders have brought learners to their history, in order."""
    found: list[str] = []
    plan = leaders.Leader._plan

    def recorded(leader: leaders.Leader, learner: int) -> object:
        made = plan(leader, learner)
        found.append("SNAP" if made is None else made[0].type.name)
        return made

    monkeypatch.setattr(leaders.Leader, "_plan", recorded)
    return found


def test_three_servers_elect_and_serve(world: World) -> None:
    """All serve with one leader; a write through any server is seen by the others after a sync."""
    ensemble = SimulatedEnsemble(world, 3)

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        assert sorted(map(ensemble.mode, ensemble.hosts)) == ["follower", "follower", "leader"]
        for id_ in ensemble.hosts:
            client = await ensemble.client(id_)
            await client.create(f"/by-{id_}", b"x", ephemeral=id_ == 2)
            if id_ != 2:
                await client.close()
        last = max(ensemble.programs[id_].history.last_zxid for id_ in ensemble.hosts)
        await until(
            lambda: all(p.history.database.last_zxid == last for p in ensemble.programs.values())
        )
        assert ensemble.contents(1) == ensemble.contents(2) == ensemble.contents(3)
        assert {"/by-1", "/by-2", "/by-3"} <= ensemble.contents(1).keys()

    ensemble.play(script)


@pytest.mark.parametrize("by_power", [False, True], ids=["kill", "power loss"])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_acknowledged_is_lost_with_the_leader(seed: int, by_power: bool) -> None:
    """A session and its writes survive the loss of one leader after the other, and their return."""
    with World(seed=seed) as world:
        ensemble = SimulatedEnsemble(world, 3, snap_count=40)
        acknowledged: list[str] = []

        async def write(client: ZooKeeper, count: int) -> None:
            for _ in range(count):
                path = f"/n{len(acknowledged)}"
                with contextlib.suppress(NodeExists):  # the interrupted request was executed
                    await insist(client, client.create, path)
                acknowledged.append(path)

        async def script() -> None:
            ensemble.start()
            client = await ensemble.client()
            session_id = client.session_id
            epochs = []
            for _ in range(3):
                await write(client, 30)
                await until(lambda: ensemble.leader != 0)
                lost = ensemble.leader
                epochs.append(ensemble.programs[lost].history.ledger.current_epoch)
                (ensemble.cut_power if by_power else ensemble.kill)(lost)
                await write(client, 30)
                ensemble.start(lost)
                await until(partial(ensemble.mode, lost))
            assert epochs == sorted(set(epochs))
            assert client.session_id == session_id
            names = set(await insist(client, client.children, "/"))
            assert {path[1:] for path in acknowledged} <= names
            await until(
                lambda: len({p.history.database.last_zxid for p in ensemble.programs.values()}) == 1
            )
            assert ensemble.contents(1) == ensemble.contents(2) == ensemble.contents(3)

        ensemble.play(script, 300)
        assert ensemble.ends == {}


def test_a_minority_serves_nothing(world: World) -> None:
    """One server of three closes its clients' connections, and serves again with another one."""
    ensemble = SimulatedEnsemble(world, 3)

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        leader = ensemble.leader
        others = [id_ for id_ in ensemble.hosts if id_ != leader]
        for id_ in others:
            ensemble.kill(id_)
        await until(lambda: ensemble.mode(leader) == "")
        await asyncio.sleep(20 * TICK_MS / 1000)
        assert ensemble.mode(leader) == ""
        ensemble.start(others[0])
        await until(lambda: ensemble.leader != 0)

    ensemble.play(script)


def test_an_observer_follows_and_never_counts(world: World) -> None:
    """An observer serves reads and forwards writes; without it writes go on."""
    ensemble = SimulatedEnsemble(world, 3, observers=1)

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        assert ensemble.mode(4) == "observer"
        client = await ensemble.client(4)
        await client.create("/a", b"1")
        assert (await client.get("/a"))[0] == b"1"
        ensemble.kill(4)
        other = await ensemble.client(1, 2, 3)
        await other.create("/b")
        ensemble.start(4)
        await client.connected()
        await until(lambda: "/b" in ensemble.contents(4))
        for id_ in (1, 2, 3):
            if id_ != ensemble.leader:
                ensemble.kill(id_)
                break
        await other.connected()
        await insist(other, other.create, "/c")
        ensemble.kill(next(id_ for id_ in (1, 2, 3) if id_ in ensemble.programs))
        await until(lambda: ensemble.mode(4) == "")

    ensemble.play(script)


def test_a_server_that_was_away_gets_the_difference(world: World, plans: list[str]) -> None:
    """A follower that returns is sent the transactions that it lacks."""
    ensemble = SimulatedEnsemble(world, 3)

    async def script() -> None:
        ensemble.start()
        client = await ensemble.client()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        away = next(id_ for id_ in ensemble.hosts if ensemble.mode(id_) == "follower")
        ensemble.kill(away)
        for number in range(50):
            await insist(client, client.create, f"/n{number}")
        plans.clear()
        ensemble.start(away)
        await until(lambda: ensemble.mode(away) == "follower")
        assert plans == ["DIFF"]
        assert ensemble.contents(away) == ensemble.contents(ensemble.leader)

    ensemble.play(script)


def test_a_server_that_was_away_for_long_gets_the_state(
    world: World, plans: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the old log the leader sends its state, while clients go on writing."""
    monkeypatch.setattr(learner_link, "NODES_PER_SLICE", 5)
    monkeypatch.setattr(snapshot_file, "NODES_PER_SLICE", 20)
    zxids: list[int] = []
    send_state, state_sent = LearnerLink.send_state, leaders.Leader._state_sent

    def begins(link: LearnerLink, database: Database) -> None:
        zxids.append(database.last_zxid)
        send_state(link, database)

    def ends(leader: leaders.Leader, key: int) -> object:
        zxids.append(leader._history.database.last_zxid)
        return state_sent(leader, key)

    monkeypatch.setattr(LearnerLink, "send_state", begins)
    monkeypatch.setattr(leaders.Leader, "_state_sent", ends)
    ensemble = SimulatedEnsemble(world, 3, snap_count=100)

    async def script() -> None:
        ensemble.start()
        client = await ensemble.client()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        away = next(id_ for id_ in ensemble.hosts if ensemble.mode(id_) == "follower")
        await client.create("/old")
        ensemble.kill(away)
        await client.connected()
        for block in range(14):
            await asyncio.gather(
                *[client.create(f"/n{block}-{number}", b"x" * 40) for number in range(100)]
            )
            await client.delete(f"/n{block}-0")
        plans.clear()
        ensemble.start(away)
        for number in range(1000):
            if ensemble.mode(away) == "follower":
                break
            created = [client.create(f"/late-{number}-{each}") for each in range(20)]
            deleted = [client.delete(f"/n{block}-{number + 1}") for block in range(14)]
            await asyncio.gather(*created, client.set("/old", b"%d" % number), *deleted)
        assert plans == ["SNAP"]
        assert zxids[1] > zxids[0] + 20, "transactions were committed while the state was sent"
        last = client.last_zxid
        await until(lambda: ensemble.programs[away].history.database.last_zxid >= last)
        assert ensemble.contents(away) == ensemble.contents(ensemble.leader)
        ensemble.cut_power(away)
        ensemble.start(away)
        await until(lambda: ensemble.mode(away) == "follower")
        assert ensemble.contents(away) == ensemble.contents(ensemble.leader)

    ensemble.play(script, 300)
    assert ensemble.ends == {}


def test_what_a_lost_leader_has_logged_alone_is_truncated(world: World, plans: list[str]) -> None:
    """A transaction that only a former leader has logged is removed from its log when it returns.

    It was acknowledged to no client.
    """
    ensemble = SimulatedEnsemble(world, 3)

    async def script() -> None:
        ensemble.start()
        client = await ensemble.client()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        await client.create("/kept")
        leader = ensemble.leader
        history = ensemble.programs[leader].history
        last = history.last_zxid
        others = [id_ for id_ in ensemble.hosts if id_ != leader]
        lonely = await ensemble.client(leader)
        for id_ in others:
            ensemble.processes[id_].pause()
        doomed = asyncio.create_task(lonely.create("/lost"))
        await until(lambda: history.last_zxid > last + 1)
        ensemble.kill(leader)
        for id_ in others:
            ensemble.kill(id_)
        doomed.cancel()
        ensemble.start(*others)
        await until(lambda: ensemble.leader != 0)
        plans.clear()
        ensemble.start(leader)
        await until(lambda: ensemble.mode(leader) == "follower")
        assert plans == ["TRUNC"]
        assert "/lost" not in ensemble.contents(leader)
        assert "/kept" in ensemble.contents(leader)
        assert ensemble.contents(leader) == ensemble.contents(ensemble.leader)

    ensemble.play(script)


def test_equal_seeds_give_equal_runs() -> None:
    """The programs draw nothing that the seed does not determine."""

    def run() -> str:
        with World(seed=3) as world:
            ensemble = SimulatedEnsemble(world, 3, observers=1)

            async def script() -> None:
                ensemble.start()
                client = await ensemble.client()
                for number in range(20):
                    await insist(client, client.create, f"/n{number}")
                ensemble.kill(ensemble.leader)
                await insist(client, client.create, "/after")

            ensemble.play(script)
            return world.trace.digest()

    assert run() == run()
