"""With too many requests in the order a server reads no more (``globalOutstandingLimit``)."""

import asyncio

from broker_impl.log.memory_disk import MemoryDisk
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.jute import frame
from broker_impl.zookeeper.pipeline import OUTSTANDING_MAX, Pipeline
from broker_impl.zookeeper.records import (
    OPEN_ACL,
    ConnectRequest,
    CreateRequest,
    Op,
    RequestHeader,
)
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.sessions import SessionTracker
from broker_impl.zookeeper.standalone import Standalone
from broker_impl.zookeeper.store import Store

CLIENTS = 3
WRITES = 1000


class Stalled(Standalone):
    """An orderer that holds everything back for a time."""

    is_stalled = False

    def flush(self) -> None:
        if not self.is_stalled:
            super().flush()


async def test_writes_wait_in_their_connections() -> None:
    """No more than the limit is taken from all connections together, and nothing is lost."""
    history = History(Store(MemoryDisk()))
    clock = asyncio.get_running_loop().time
    orderer = Stalled(history, lambda: 1)
    pipeline = Pipeline(
        history,
        orderer,
        SessionTracker(1000),
        password=lambda session_id: b"p" * 16,
        wall_ms=lambda: 1,
        clock=clock,
    )
    orderer.attach(pipeline)
    server = Server(pipeline, connections_max=0)
    port = await server.start("127.0.0.1", 0)
    streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(CLIENTS)]
    for reader, writer in streams:
        writer.write(frame(ConnectRequest(0, 0, 4000, 0, bytes(16), None)))
        await reader.readexactly(4 + 36)
    orderer.is_stalled = True
    for number, (_, writer) in enumerate(streams):
        for xid in range(1, WRITES + 1):
            request = CreateRequest(f"/n{number}-{xid}", b"", OPEN_ACL, 0)
            writer.write(frame(RequestHeader(xid, Op.CREATE), request))
    while not pipeline.is_full:  # noqa: ASYNC110 - bytes arrive when they arrive
        await asyncio.sleep(0)
    for _ in range(200):
        await asyncio.sleep(0)
    assert len(pipeline) <= OUTSTANDING_MAX + CLIENTS
    orderer.is_stalled = False
    server.schedule()
    for number, (reader, writer) in enumerate(streams):
        for _ in range(WRITES):
            size = int.from_bytes(await reader.readexactly(4))
            await reader.readexactly(size)
        writer.close()
        await writer.wait_closed()
        assert f"/n{number}-{WRITES}" in history.database.nodes
    assert not pipeline.is_full
    await server.stop()
