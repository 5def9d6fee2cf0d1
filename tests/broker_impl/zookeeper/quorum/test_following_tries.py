"""A learner and the connection to its leader."""

import asyncio

from broker_impl.zookeeper.quorum import following
from broker_impl.zookeeper.quorum.ensemble import Ensemble, Member
from broker_impl.zookeeper.quorum.following import CONNECT_TRIES, Following
from broker_impl.zookeeper.quorum.membership import Membership
from broker_impl.zookeeper.quorum.packets import PacketReader, Type
from broker_impl.zookeeper.server import Server
from harness.simulation.world import World
from tests.broker_impl.zookeeper.quorum.conftest import RecordingHistory

LEADER = Member(2, "zk-2", 2888, 3888)


def followed(closes: int) -> tuple[list[Type], str | None]:
    """Follow a leader whose first connections end at once, as those of a proxy without a server.

    Return the first packets of the connections that did not, and why the learner left, if it did.
    """
    with World(1) as world:
        first: list[Type] = []

        async def lead() -> None:
            left = closes

            async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal left
                if left:
                    left -= 1
                    writer.close()
                    return
                packets = PacketReader()
                packets.receive(await reader.read(1024))
                packet = packets.next()
                assert packet is not None
                first.append(Type(packet.type))
                await asyncio.sleep(60)

            await asyncio.start_server(accepted, LEADER.host, LEADER.quorum_port)
            await asyncio.sleep(60)

        async def follow() -> str | None:
            ensemble = Ensemble([Member(1, "zk-1", 2888, 3888), LEADER])
            clock = asyncio.get_running_loop().time
            server = Server(tick_ms=500)
            site = Membership(1, ensemble, RecordingHistory(), server, lambda: 0, clock)
            learner = Following(site, lambda epoch: None)
            try:
                async with asyncio.timeout(2):
                    return await learner.run(LEADER)
            except TimeoutError:
                return None

        world.host(LEADER.host).spawn(lead)
        found = world.run(world.host("zk-1").spawn(follow))
        return first, found


def test_a_connection_that_ends_unanswered_is_tried_again() -> None:
    """A proxy accepts before the leader listens: the learner connects again, and registers."""
    assert followed(CONNECT_TRIES - 1) == ([Type.FOLLOWERINFO], None)


def test_a_leader_that_never_answers_is_left() -> None:
    """After its last try the learner looks for another leader."""
    assert following.CONNECT_PAUSE_S * CONNECT_TRIES < 1
    assert followed(CONNECT_TRIES) == ([], "the connection to the leader has ended")
