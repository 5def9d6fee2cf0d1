"""A broker that stores nothing: it has this project's event loop and request handling, but no log.

It is the peer of the produce benchmark: its rate is the most that a broker with a log can reach.
"""

import argparse
import asyncio
import itertools
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from broker_impl.api.cluster_view import BrokerView, ClusterView, PartitionView
from broker_impl.api.purgatory import Waiting
from broker_impl.api.services import Services
from broker_impl.config import parse
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.node.quotas import limits
from broker_impl.platform.malloc import tune_malloc
from broker_impl.replica.events import AppendResult
from broker_impl.server import Server
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition


class NullReplicas:
    """Leads every partition and forgets every append."""

    def __init__(self) -> None:
        self._end: dict[TopicPartition, int] = {}

    def append(
        self, tp: TopicPartition, records: memoryview, *, acks: int, guard: int | None = None
    ) -> AppendResult:
        """Read the header, as any broker must, and count the records."""
        base = self._end.get(tp, 0)
        self._end[tp] = base + batch.parse_header(records).count
        return AppendResult(base_offset=base, last_offset=self._end[tp] - 1, log_start_offset=0)

    def acknowledged(self, tp: TopicPartition, result: AppendResult) -> ErrorCode:
        """Acknowledge at once."""
        return ErrorCode.NONE


async def main(port_file: Path, topics: list[str]) -> None:
    """Listen on a free port, write it to the port file as a broker does, and serve until ended."""
    tune_malloc()
    config = parse(
        {
            "broker.id": "1",
            "zookeeper.connect": "none:0",
            "listeners": "CLIENT://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT",
        }
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
        quotas=SimpleNamespace(limits=limits(config)),
        counts=Counts(),
    )
    server = Server(cast(Services, services), config, lambda error: sys.exit(str(error)))
    bound = await server.listen(config.endpoints()[0])
    view.brokers[1] = BrokerView(1, None, {bound.name: (bound.host, bound.port)})
    for topic in topics:
        view.topics[topic] = {0: PartitionView(1, 0, (1,), (1,))}
    view.controller_id = 1
    server.open_to_clients()
    scratch = port_file.with_name(port_file.name + ".tmp")
    scratch.write_text(json.dumps({bound.name: bound.port}))
    scratch.replace(port_file)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.null_broker")
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("topics", nargs="+")
    options = parser.parse_args()
    asyncio.run(main(options.port_file, options.topics))
