"""Scripted schedules: short stories that show one planted bug each, and are harmless without it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bench.ensembles.clients import QUEUE, Seen, WatchingClient
from bench.ensembles.rig import CLIENT_PORT, Node, Rig, name_of
from broker_impl.zookeeper.errors import ConnectionLoss
from broker_impl.zookeeper.quorum.following import Following
from broker_impl.zookeeper.quorum.learner import Phase

LOOK_S = 0.0005
"""How often a script looks whether what it waits for has happened."""
WAIT_S_MAX = 6.0


class Script:
    """The steps of a schedule, in terms of servers."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def node(self, number: int) -> Node:
        """Return a server."""
        return self.rig.nodes[number]

    async def until(self, condition: Callable[[], bool], limit_s: float = WAIT_S_MAX) -> bool:
        """Wait for a condition; False if it has not come true in time, and the story goes on."""
        end = self.rig.world.now + limit_s
        while not condition():
            if self.rig.world.now > end:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def serving(self, *servers: int) -> bool:
        """Wait until these servers serve clients, or all of them."""
        chosen = servers or tuple(self.rig.shape.servers)
        return await self.until(lambda: all(self.rig.serves(each) for each in chosen))

    async def leader(self) -> int:
        """Wait for a leader, and return it."""
        await self.until(lambda: self.rig.leader() is not None)
        return self.rig.leader() or self.rig.shape.servers[0]

    def applied(self, server: int) -> int:
        """Return the zxid of the last transaction that a server has applied."""
        program = self.node(server).program
        return 0 if program is None else program.history.database.last_zxid

    def logged(self, server: int) -> int:
        """Return the zxid of the last transaction that a server has logged."""
        program = self.node(server).program
        return 0 if program is None else program.history.last_zxid

    async def writes(self, server: int, count: int = 8) -> None:
        """Wait until so many more transactions were applied on a server."""
        start = self.applied(server)
        await self.until(lambda: self.applied(server) >= start + count)

    def learner_phase(self, server: int) -> Phase | None:
        """Return the phase of a learner; None if the server is no learner."""
        program = self.node(server).program
        peer = None if program is None else program.peer
        role = None if peer is None else peer.role
        return role.state.phase if isinstance(role, Following) else None

    def kill(self, *servers: int) -> None:
        """Kill these servers."""
        for server in servers:
            self.node(server).kill()

    def start(self, *servers: int) -> None:
        """Start these servers."""
        for server in servers:
            self.node(server).start()


Story = Callable[[Script], Awaitable[None]]


async def calm(script: Script) -> None:
    """Clients operate for a while, and nothing fails."""
    await script.serving()
    await asyncio.sleep(4.0)


async def resets(script: Script) -> None:
    """Connections of clients are reset again and again."""
    await script.serving()
    for _ in range(8):
        for host in script.rig.client_hosts:
            for server in script.rig.shape.servers:
                script.rig.world.network.reset(name_of(server), host)
        await asyncio.sleep(0.4)


async def silence(script: Script) -> None:
    """Clients cannot reach any server for less than their timeouts, five times."""
    rig = script.rig
    await script.serving()
    ways = [
        way
        for host in rig.client_hosts
        for server in rig.shape.servers
        for way in ((host, name_of(server)), (name_of(server), host))
    ]
    for _ in range(5):
        for way in ways:
            rig.cut(*way)
        await asyncio.sleep(0.5)
        for way in ways:
            rig.heal(*way)
        for host in rig.client_hosts:
            for server in rig.shape.servers:
                rig.world.network.reset(name_of(server), host)
        await asyncio.sleep(0.5)


async def restarts(script: Script) -> None:
    """Each server is killed and starts again, one after the other, twice."""
    await script.serving()
    for server in [*script.rig.shape.servers] * 2:
        await script.writes(server)
        script.kill(server)
        await asyncio.sleep(0.3)
        script.start(server)
        await script.serving()


async def lonely_leader(script: Script) -> None:
    """A leader is cut off with writes that no other server has; another one replaces it.

    It returns as a follower, and has to truncate. Then all servers are killed and start again.
    """
    await script.serving()
    leader = await script.leader()
    others = [each for each in script.rig.shape.servers if each != leader]
    before = script.applied(leader)
    links = script.rig.split([leader])
    await script.until(lambda: script.logged(leader) > before + 1, 0.4)
    await script.until(lambda: script.rig.leader() in others)
    await script.writes(others[0])
    for link in links:
        script.rig.heal(*link)
    await script.serving()
    await script.writes(leader)
    script.kill(*script.rig.shape.servers)
    script.start(*script.rig.shape.servers)
    await script.serving()


async def truncation(script: Script) -> None:
    """A leader is cut off with writes that no other server has, and returns to a later epoch.

    The others have a new leader and no transactions of it yet, so that it has to truncate.
    """
    await script.serving()
    leader = await script.leader()
    others = [each for each in script.rig.shape.servers if each != leader]
    before = script.applied(leader)
    links = script.rig.split([leader])
    await script.until(lambda: script.logged(leader) > before + 1, 0.4)
    await script.until(lambda: script.rig.leader() in others)
    script.kill(*script.rig.shape.servers)
    for link in links:
        script.rig.heal(*link)
    script.start(*script.rig.shape.servers)
    await script.serving()


async def observers_first(script: Script) -> None:
    """A leader has writes that no other server has, and its observers are faster than its voters.

    It needs two observers.
    """
    await script.serving()
    leader = await script.leader()
    voters = [each for each in script.rig.shape.voter_ids if each != leader]
    before = script.applied(leader)
    links = script.rig.split([leader])
    await script.until(lambda: script.logged(leader) > before + 1, 0.4)
    script.kill(*script.rig.shape.servers)
    for link in links:
        script.rig.heal(*link)
    way = (name_of(leader), name_of(voters[0]))
    script.rig.slow(*way, 0.3)
    others = [each for each in script.rig.shape.servers if each not in voters]
    script.start(*others, voters[0])
    await script.serving(leader)
    await asyncio.sleep(0.5)
    script.rig.slow(*way, 0.0)
    script.start(voters[1])
    await script.serving()


async def islands(script: Script) -> None:
    """No server reaches any other one; clients reach all of them."""
    await script.serving()
    servers = [*script.rig.shape.servers]
    links = [link for server in servers[1:] for link in script.rig.split([server])]
    await asyncio.sleep(3.0)
    for link in links:
        script.rig.heal(*link)
    await script.serving()


async def joins(script: Script) -> None:
    """A follower misses writes, and loses power or is killed right after its leader serves it."""
    for ends in ("power", "kill"):
        await script.serving()
        leader = await script.leader()
        [joiner, *_] = [each for each in script.rig.shape.voter_ids if each != leader]
        script.kill(joiner)
        await script.writes(leader)
        script.start(joiner)
        await script.until(
            lambda joiner=joiner: (  # type: ignore[misc]
                script.learner_phase(joiner) in (Phase.SYNCHRONIZED, Phase.SERVING)
            )
        )
        if ends == "power":
            script.node(joiner).lose_power()
        else:
            script.kill(joiner)
        script.start(joiner)
    await script.serving()


async def power(script: Script) -> None:
    """All servers lose power at once, twice, while clients write."""
    for _ in range(2):
        await script.serving()
        await script.writes(await script.leader())
        for server in script.rig.shape.servers:
            script.node(server).lose_power()
        script.start(*script.rig.shape.servers)
    await script.serving()


async def full_disk(script: Script) -> None:
    """The disk of a follower is full for a moment."""
    await script.serving()
    leader = await script.leader()
    [follower, *_] = [each for each in script.rig.shape.voter_ids if each != leader]
    script.node(follower).disk.fill(40)
    await script.writes(leader)
    script.node(follower).disk.free()
    await script.writes(leader)
    script.kill(follower)
    script.start(follower)
    await script.serving()


async def laggard(script: Script) -> None:
    """The server with the highest id misses writes, and takes part in an election."""
    *others, last = script.rig.shape.voter_ids
    await script.serving()
    script.kill(last)
    await script.serving(*others)
    script.start(last)
    await script.serving()
    script.kill(last)
    await script.writes(others[0])
    script.kill(*others)
    script.start(last, *others)
    await script.serving()


async def epoch_without_history(script: Script) -> None:
    """A server ends right after it has written the epoch of a leader whose history it takes over.

    The others had committed what it lacked. Then it meets the server that was down meanwhile.
    """
    one, two, three = script.rig.shape.voter_ids
    await script.serving()
    # The server with the lowest id misses what the others commit.
    script.kill(one)
    await script.serving(two, three)
    await script.writes(two)
    script.kill(two, three)
    # With the last one as its leader, it ends between the epoch and the log.
    disk = script.node(one).disk
    disk.interrupt_rename(
        "currentEpoch.tmp", lambda: disk.interrupt(3, script.node(one).lose_power)
    )
    script.start(one, three)
    await script.until(lambda: not script.node(one).is_up)
    disk.cancel_interrupt()
    script.kill(one, three)
    script.start(one, two)
    await script.serving(one, two)
    script.start(three)
    await script.serving()


async def state_interrupted(script: Script) -> None:
    """A follower receives the state of its leader, and loses the leader before NEWLEADER."""
    await script.serving()
    leader = await script.leader()
    voters = script.rig.shape.voter_ids
    [joiner, third, *_] = [each for each in voters if each != leader]
    script.kill(joiner)
    await script.writes(leader, 60)
    link = (name_of(leader), name_of(joiner))
    # The state arrives in pieces: NEWLEADER comes some time after its end.
    script.rig.world.network.link(*link).bytes_per_s = 10_000
    script.start(joiner)
    await script.until(lambda: script.learner_phase(joiner) is Phase.SYNCHRONIZING)
    script.rig.cut(*link)
    script.rig.world.network.link(*link).bytes_per_s = None
    await asyncio.sleep(0.05)
    script.node(leader).lose_power()
    script.rig.heal(*link)
    await script.serving(joiner, third)
    await script.writes(third, 3)  # too few for a snapshot, which would hold the state
    script.kill(joiner)
    script.start(joiner, leader)
    await script.serving()


async def moved(script: Script) -> None:
    """A client moves to another server while its former one still forwards its write, slowly."""
    rig = script.rig
    await script.serving()
    leader = await script.leader()
    former, latter, *_ = [each for each in rig.shape.servers if each != leader]
    client = WatchingClient(rig.connect([former]), session_timeout_ms=2000, rng=random.Random(1))
    client.servers.append((name_of(latter), CLIENT_PORT))
    await client.start()
    rig.slow(name_of(former), name_of(leader), 0.25)
    late = asyncio.create_task(_append(script, client, b"0.1"))
    await asyncio.sleep(0.05)
    rig.world.network.reset(rig.control, name_of(former))
    await asyncio.gather(late)
    await client.connected()
    await _append(script, client, b"0.2")
    await asyncio.sleep(0.5)
    rig.slow(name_of(former), name_of(leader), 0.0)
    await client.close()


async def _append(script: Script, client: WatchingClient, value: bytes) -> None:
    """Create a sequential node, and note the outcome as that of a client's operation."""
    began, outcome, seen = script.rig.world.now, "ok", (value.decode(), value)
    try:
        path = await client.create(f"{QUEUE}/n-", value, sequential=True)
        seen = (path, value)
    except ConnectionLoss:
        outcome = "unknown"
    ended = script.rig.world.now
    script.rig.observations.seen.append(
        Seen(0, 1, "append", began, ended, outcome, seen if outcome == "ok" else value)
    )


STORIES: Mapping[str, Story] = {
    story.__name__.replace("_", "-"): story
    for story in (
        calm,
        resets,
        silence,
        restarts,
        lonely_leader,
        truncation,
        islands,
        observers_first,
        joins,
        power,
        full_disk,
        laggard,
        epoch_without_history,
        state_interrupted,
        moved,
    )
}


def scripted(name: str) -> Callable[[Rig, random.Random], Awaitable[Sequence[str]]]:
    """Return the faults of a story."""
    story = STORIES[name]

    async def run(rig: Rig, rng: random.Random) -> Sequence[str]:
        del rng
        await story(Script(rig))
        return [name]

    return run
