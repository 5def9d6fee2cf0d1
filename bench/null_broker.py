"""A broker that stores nothing: our loop, our codec, our request handling, and no log.

What it reaches is what the rest of a broker may cost at most: the peer of the produce benchmark.
"""

import asyncio
import itertools
import sys
from types import SimpleNamespace
from typing import Any, cast

from broker_impl.api.cluster_view import BrokerView, ClusterView, PartitionView
from broker_impl.api.services import Services
from broker_impl.api.waiting import Waiting
from broker_impl.config import parse
from broker_impl.errors import ErrorCode
from broker_impl.node.malloc import tune_malloc
from broker_impl.replica.events import AppendResult
from broker_impl.server import Server
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition


class NullReplicas:
    """Every partition is led here, and every append is forgotten."""

    def __init__(self) -> None:
        self._end: dict[TopicPartition, int] = {}

    def append(self, tp: TopicPartition, records: memoryview, *, acks: int) -> AppendResult:
        """Read the header, as any broker must; count."""
        base = self._end.get(tp, 0)
        self._end[tp] = base + batch.parse_header(records).count
        return AppendResult(base_offset=base, last_offset=self._end[tp] - 1, log_start_offset=0)

    def acknowledged(self, tp: TopicPartition, result: AppendResult) -> ErrorCode:
        """At once."""
        return ErrorCode.NONE


async def main(topic: str) -> None:
    """Listen on a free port, print it, serve until killed."""
    tune_malloc()
    config = parse(
        {"broker.id": "1", "zookeeper.connect": "none:0", "listeners": "PLAINTEXT://127.0.0.1:0"}
    )
    view, ids = ClusterView(), itertools.count()

    async def next_producer_id() -> int:
        return next(ids)

    services: Any = SimpleNamespace(
        config=config,
        cluster_id="null",
        view=view,
        waiting=Waiting(),
        replicas=NullReplicas(),
        next_producer_id=next_producer_id,
    )
    server = Server(cast(Services, services), config, lambda error: sys.exit(str(error)))
    bound = await server.listen(config.endpoints()[0])
    view.brokers[1] = BrokerView(1, None, {"PLAINTEXT": (bound.host, bound.port)})
    view.topics[topic] = {0: PartitionView(1, 0, (1,), (1,))}
    view.controller_id = 1
    server.open_to_clients()
    print(bound.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
