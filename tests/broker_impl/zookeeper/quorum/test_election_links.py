"""One connection for each pair of servers, which the server with the higher id opens."""

import asyncio
import struct
from collections.abc import Callable, Iterator

import pytest

from broker_impl.zookeeper.quorum import notifications
from broker_impl.zookeeper.quorum.election_links import GREETING_S_MAX, ElectionLinks
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.notifications import Notification, State, Vote
from harness.simulation.process import Process
from harness.simulation.world import World

PORT = 3888
IDS = (1, 2, 3)
ENSEMBLE = Ensemble(Member(id_, f"zk-{id_}", 2888, PORT) for id_ in IDS)


def vote(sender: int, round_: int) -> Notification:
    return Notification(sender, State.LOOKING, Vote(0, 0, sender), round_)


class Site:
    """Servers with nothing but their links."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.hosts = {id_: world.host(f"zk-{id_}") for id_ in IDS}
        self.outside = world.host("outside")
        self.links: dict[int, ElectionLinks] = {}
        self.processes: dict[int, Process] = {}
        self.heard: dict[int, list[Notification]] = {id_: [] for id_ in IDS}

    def start(self, *ids: int) -> None:
        for id_ in ids:
            self.processes[id_] = self.hosts[id_].spawn(lambda id_=id_: self._live(id_))  # type: ignore[misc]

    async def _live(self, id_: int) -> None:
        links = ElectionLinks(id_, ENSEMBLE, self.heard[id_].append)
        await links.start("0.0.0.0", PORT)
        self.links[id_] = links
        await asyncio.get_running_loop().create_future()

    def send(self, sender: int, receiver: int, round_: int) -> None:
        """Send a notification, in the sender's own process."""
        self.processes[sender].call(self.links[sender].send, receiver, vote(sender, round_))

    def rounds(self, receiver: int, sender: int) -> list[int]:
        return [found.round for found in self.heard[receiver] if found.sender == sender]


@pytest.fixture
def site() -> Iterator[Site]:
    with World(seed=5) as world:
        yield Site(world)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - any state of any object may be waited for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(("sender", "receiver"), [(3, 1), (1, 3)])
def test_a_notification_arrives_whichever_id_is_higher(
    sender: int, receiver: int, site: Site
) -> None:
    """A server with the lower id is called back, and both use that one connection then."""

    async def script() -> None:
        site.start(1, 3)
        await until(lambda: len(site.links) == 2)
        site.send(sender, receiver, 1)
        await until(lambda: site.rounds(receiver, sender) == [1])
        site.send(receiver, sender, 2)
        site.send(sender, receiver, 3)
        await until(lambda: site.rounds(sender, receiver) == [2])
        await until(lambda: site.rounds(receiver, sender) == [1, 3])
        assert list(site.links[1]._links) == [3]
        assert list(site.links[3]._links) == [1]

    site.world.run(site.outside.spawn(script), 60)


def test_only_the_latest_notification_waits_for_a_server(site: Site) -> None:
    """What a server missed while it was away is replaced by the latest."""

    async def script() -> None:
        site.start(1)
        await until(lambda: 1 in site.links)
        for round_ in (1, 2, 3):
            site.send(1, 2, round_)
            await asyncio.sleep(0.1)
        site.start(2)
        await until(lambda: 2 in site.links)
        site.processes[1].call(site.links[1].connect_all)
        await until(lambda: site.rounds(2, 1))
        await asyncio.sleep(1)
        assert site.rounds(2, 1) == [3]

    site.world.run(site.outside.spawn(script), 60)


def test_a_restarted_server_gets_the_latest_notification_again(site: Site) -> None:
    """A notification may have been lost with a connection, so the next one begins with it."""

    async def script() -> None:
        site.start(2, 3)
        await until(lambda: len(site.links) == 2)
        site.send(3, 2, 4)
        await until(lambda: site.rounds(2, 3) == [4])
        site.processes[2].kill()
        site.heard[2].clear()
        del site.links[2]
        site.start(2)
        await until(lambda: 2 in site.links)
        site.send(2, 3, 9)
        await until(lambda: 9 in site.rounds(3, 2))
        await until(lambda: site.rounds(2, 3) == [4])

    site.world.run(site.outside.spawn(script), 60)


@pytest.mark.parametrize(
    "data",
    [
        notifications.encode_greeting(9, "x:1"),
        notifications.encode_greeting(2, "x:1"),
        struct.pack(">q", -77),
        notifications.encode_greeting(3, "x:1") + struct.pack(">i", -1),
        notifications.encode_greeting(3, "x:1") + struct.pack(">ii", 4, 1),
        b"",
    ],
    ids=["stranger", "itself", "unknown version", "negative length", "short", "silent"],
)
def test_a_connection_that_is_no_members_is_closed(data: bytes, site: Site) -> None:
    """Strangers, malformed greetings and messages, and silence end a connection alone."""

    async def script() -> None:
        site.start(2)
        await until(lambda: 2 in site.links)
        reader, writer = await asyncio.open_connection("zk-2", PORT)
        writer.write(data)
        async with asyncio.timeout(GREETING_S_MAX + 1):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
        writer.close()
        assert site.heard[2] == []
        assert not site.links[2]._unknown
        site.start(3)
        await until(lambda: 3 in site.links)
        site.send(3, 2, 1)
        await until(lambda: site.rounds(2, 3) == [1])

    site.world.run(site.outside.spawn(script), 60)
