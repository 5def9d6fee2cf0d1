"""Reads a cluster's metadata from ZooKeeper: controller, brokers, leaders and ISRs.

The harness itself reads the znodes that Kafka documents. It asks no broker, so that a broker's
wrong view cannot mislead it. It connects to ZooKeeper directly, past the mesh.
"""

import asyncio
import random

import msgspec

from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.errors import NoNode, ZooKeeperError
from broker_impl.zookeeper.records import Stat
from harness.cluster.observe.metadata_view import Registration, ViewUnavailable
from model import roles
from model.capabilities.control_plane import Partition
from model.roles import NodeId

SESSION_TIMEOUT_MS = 10_000
READ_TIMEOUT_S = 2.0


class _Controller(msgspec.Struct, frozen=True):
    brokerid: int


class _Topic(msgspec.Struct, frozen=True):
    partitions: dict[str, list[int]]
    adding_replicas: dict[str, list[int]] = {}
    removing_replicas: dict[str, list[int]] = {}


class _State(msgspec.Struct, frozen=True):
    leader: int
    leader_epoch: int
    isr: list[int]


class View:
    """Reads through one session, and opens another when that one is lost."""

    def __init__(self, connect: str, rng: random.Random) -> None:
        self._connect = connect
        self._rng = rng
        self._zookeeper: ZooKeeper | None = None

    async def close(self) -> None:
        if self._zookeeper is not None:
            await self._zookeeper.close()
            self._zookeeper = None

    async def controller(self) -> NodeId | None:
        """The elected controller, if there is one."""
        data = await self._read("/controller")
        if data is None:
            return None
        return roles.broker(msgspec.json.decode(data, type=_Controller).brokerid)

    async def live(self) -> tuple[NodeId, ...]:
        """The brokers that have a session."""
        return tuple(roles.broker(int(child)) for child in await self._children("/brokers/ids"))

    async def registration(self, broker: NodeId) -> Registration | None:
        """A broker's registration; ``None`` if it is not registered."""
        found = await self._find(f"/brokers/ids/{roles.number(broker)}")
        return None if found is None else Registration(found[1].czxid, found[1].ephemeral_owner)

    async def topics(self) -> tuple[str, ...]:
        return tuple(await self._children("/brokers/topics"))

    async def partition(self, key: str) -> Partition | None:
        """One partition by its ``topic-partition``; ``None`` if it does not exist (yet)."""
        topic, _, number = key.rpartition("-")
        data = await self._read(f"/brokers/topics/{topic}")
        if data is None:
            return None
        said = msgspec.json.decode(data, type=_Topic)
        return await self._state_of(topic, number, said) if number in said.partitions else None

    async def partitions(self) -> tuple[Partition, ...]:
        """Every partition of every topic."""
        found: list[Partition] = []
        for topic in await self.topics():
            data = await self._read(f"/brokers/topics/{topic}")
            if data is None:
                continue
            said = msgspec.json.decode(data, type=_Topic)
            found += [await self._state_of(topic, number, said) for number in said.partitions]
        return tuple(found)

    async def _state_of(self, topic: str, number: str, said: _Topic) -> Partition:
        data = await self._read(f"/brokers/topics/{topic}/partitions/{number}/state")
        state = _State(-1, -1, []) if data is None else msgspec.json.decode(data, type=_State)
        return Partition(
            key=f"{topic}-{number}",
            replicas=tuple(map(roles.broker, said.partitions[number])),
            leader=roles.broker(state.leader) if state.leader >= 0 else None,
            leader_epoch=state.leader_epoch,
            isr=tuple(map(roles.broker, state.isr)),
            adding=tuple(map(roles.broker, said.adding_replicas.get(number, ()))),
            removing=tuple(map(roles.broker, said.removing_replicas.get(number, ()))),
        )

    async def _read(self, path: str) -> bytes | None:
        found = await self._find(path)
        return None if found is None else found[0]

    async def _find(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await (await self._session()).get(path)
        except NoNode:
            return None
        except (ZooKeeperError, TimeoutError) as error:
            raise ViewUnavailable(f"{path}: {error!r}") from error

    async def _children(self, path: str) -> list[str]:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                return await (await self._session()).children(path)
        except NoNode:
            return []
        except (ZooKeeperError, TimeoutError) as error:
            raise ViewUnavailable(f"{path}: {error!r}") from error

    async def _session(self) -> ZooKeeper:
        if self._zookeeper is not None and self._zookeeper.state in (
            SessionState.EXPIRED,
            SessionState.CLOSED,
        ):
            await self.close()
        if self._zookeeper is None:
            self._zookeeper = ZooKeeper(
                self._connect, session_timeout_ms=SESSION_TIMEOUT_MS, rng=self._rng
            )
            await self._zookeeper.start()
        await self._zookeeper.connected()
        return self._zookeeper
