"""A third party ends a session of the simulated ZooKeeper server."""

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from broker_impl.errors import StorageError
from broker_impl.zookeeper import sessions
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.program import Settings
from broker_impl.zookeeper.store import SECRET
from harness.cluster.address import Address
from harness.cluster.simulated import session_expiry, simulated_node
from harness.simulation.disk import SimDisk
from harness.simulation.world import World

SERVER = Address("zookeeper", 2181)
TIMEOUT_MS = 4000


@pytest.mark.parametrize("knows_secret", [True, False])
def test_who_knows_the_secret_ends_the_session(knows_secret: bool) -> None:
    """With the server's secret any client can end a session; without it nothing changes.

    The owner learns that its session has expired, and its ephemeral znodes are removed.
    """
    with World(3) as world:
        disk = SimDisk(random.Random(1), StorageError)
        program = simulated_node.zookeeper(Settings(host="0.0.0.0", port=SERVER.port, tick_ms=500))

        def serve() -> Coroutine[Any, Any, Any]:
            async def main() -> None:
                await program(disk.attach(), random.Random(2), lambda: 1, lambda stop: None)

            return main()

        async def main() -> tuple[bool, SessionState]:
            await asyncio.sleep(0.5)
            owner = ZooKeeper(str(SERVER), session_timeout_ms=TIMEOUT_MS, rng=random.Random(3))
            await owner.start()
            await owner.create("/mine", ephemeral=True)
            secret = disk.peek(SECRET) if knows_secret else bytes(16)
            password = sessions.password(secret, owner.session_id)
            ended = await session_expiry.end(SERVER, owner.session_id, password, TIMEOUT_MS)
            await asyncio.sleep(1.0)
            state = owner.state
            await owner.close()
            return ended, state

        world.host("zookeeper").spawn(serve)
        told = world.run(world.host("clients").spawn(main))
        assert told == (
            (True, SessionState.EXPIRED) if knows_secret else (False, SessionState.CONNECTED)
        )


def test_nobody_there_ends_nothing() -> None:
    """If the server does not answer, the session counts as not ended."""
    with World(3) as world:
        world.host("zookeeper")
        host = world.host("clients")
        process = host.spawn(lambda: session_expiry.end(SERVER, 7, bytes(16), TIMEOUT_MS))
        assert world.run(process) is False
