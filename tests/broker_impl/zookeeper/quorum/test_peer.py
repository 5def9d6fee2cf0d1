"""A server goes from one role to the next, and ends with the error that its roles end with."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from broker_impl.zookeeper.quorum.peer import PAUSE_S
from harness.simulation.world import World
from tests.broker_impl.zookeeper.quorum.simulated_ensemble import TICK_MS, SimulatedEnsemble


@pytest.fixture
def ensemble() -> Iterator[SimulatedEnsemble]:
    with World(seed=11) as world:
        yield SimulatedEnsemble(world, 3)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(PAUSE_S / 5)


def test_a_lost_leader_is_replaced_in_a_later_epoch(ensemble: SimulatedEnsemble) -> None:
    """Followers leave a leader that is gone, elect another, and enter its epoch durably."""

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        first = ensemble.leader
        epoch = ensemble.programs[first].history.ledger.current_epoch
        ensemble.kill(first)
        await until(lambda: ensemble.leader not in (0, first))
        await until(lambda: sum(ensemble.mode(id_) != "" for id_ in ensemble.hosts) == 2)
        for program in ensemble.programs.values():
            assert program.history.ledger.accepted_epoch == epoch + 1
            assert program.history.ledger.current_epoch == epoch + 1

    ensemble.play(script)


def test_between_two_roles_no_client_is_served(ensemble: SimulatedEnsemble) -> None:
    """A server that loses its quorum closes its clients' connections, and applies its log."""

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        leader = ensemble.leader
        client = await ensemble.client(leader)
        history = ensemble.programs[leader].history
        for id_ in ensemble.hosts:
            if id_ != leader:
                ensemble.processes[id_].pause()
        last = history.database.last_zxid
        doomed = asyncio.create_task(client.create("/a"))
        await until(lambda: history.last_zxid > last)
        assert history.database.last_zxid == last, "logged, and not committed"
        await until(lambda: ensemble.mode(leader) == "")
        assert not ensemble.programs[leader].server.connections
        assert history.database.last_zxid == history.last_zxid, "as a restart would (2845)"
        with pytest.raises(Exception, match="lost"):
            await doomed

    ensemble.play(script)


def test_a_port_that_is_taken_ends_the_server(ensemble: SimulatedEnsemble) -> None:
    """A server that cannot listen for votes says so and ends."""

    async def squat() -> None:
        await asyncio.start_server(lambda reader, writer: None, "0.0.0.0", 3888)
        await asyncio.sleep(1000)

    async def script() -> None:
        ensemble.hosts[1].spawn(squat)
        await asyncio.sleep(0.1)
        ensemble.start(1)
        await until(lambda: 1 in ensemble.ends)
        assert "Address already in use" in ensemble.ends[1]

    ensemble.play(script)


def test_a_disk_that_fails_ends_the_server_and_not_the_ensemble(
    ensemble: SimulatedEnsemble,
) -> None:
    """A follower whose log cannot be written ends, and acknowledges nothing (2247, 4882)."""

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        victim = next(id_ for id_ in ensemble.hosts if ensemble.mode(id_) == "follower")
        client = await ensemble.client(ensemble.leader)
        ensemble.disks[victim].fail_fsync()
        await client.create("/a")
        await until(lambda: victim in ensemble.ends)
        await client.create("/b")
        ensemble.disks[victim].fail_fsync(0)
        ensemble.start(victim)
        await until(lambda: ensemble.mode(victim) == "follower")
        await until(lambda: "/b" in ensemble.contents(victim))
        assert ensemble.contents(victim) == ensemble.contents(ensemble.leader)

    ensemble.play(script)


def _servers_of(ensemble: SimulatedEnsemble, session_id: int) -> list[int]:
    """The servers to which the client of a session is connected."""
    found = {id_: ensemble.pipeline(id_) for id_ in ensemble.hosts}
    return [id_ for id_, each in found.items() if each is not None and session_id in each.clients]


def test_a_session_moves_with_its_nodes(ensemble: SimulatedEnsemble) -> None:
    """A client whose server dies keeps its session and its ephemeral nodes at another one."""

    async def script() -> None:
        ensemble.start()
        await until(lambda: all(map(ensemble.mode, ensemble.hosts)))
        client = await ensemble.client()
        await client.create("/e", ephemeral=True)
        [first] = _servers_of(ensemble, client.session_id)
        ensemble.kill(first)
        await until(lambda: _servers_of(ensemble, client.session_id))
        await asyncio.sleep(25 * TICK_MS / 1000)
        stat = await client.exists("/e")
        assert stat is not None
        assert stat.ephemeral_owner == client.session_id
        await client.close()
        witness = await ensemble.client(*ensemble.programs)
        assert await witness.exists("/e") is None

    ensemble.play(script)
