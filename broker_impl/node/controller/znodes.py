"""The controller's reads and writes in ZooKeeper; each write is fenced by the controller epoch.

Each write is one multi that checks the version of /controller_epoch: once another controller is
elected, no later write of its predecessor takes effect (KAFKA-6082). A lost connection does not end
a term: reads are repeated, and the result of a write that is unknown is looked up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

import msgspec

from broker_impl import failpoints
from broker_impl.config import parse_endpoint
from broker_impl.controller.context import BrokerInfo, Leadership
from broker_impl.controller.creation import NewTopic
from broker_impl.controller.reassignment import Assignment, Move
from broker_impl.errors import BrokerError, ConfigError
from broker_impl.node import zk_paths
from broker_impl.wire import topic_ids
from broker_impl.wire.types import BrokerId, Epoch, TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.client_watches import WatchEvent
from broker_impl.zookeeper.errors import BadVersion, ConnectionLoss, NodeExists, NoNode
from broker_impl.zookeeper.multi import Check, Create, Delete, MultiFailed, MultiResult, SetData
from broker_impl.zookeeper.records import Stat

LOG = logging.getLogger(__name__)

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Watch = Callable[[WatchEvent], None]
Write = Create | SetData | Delete

_WRITES_MAX = 1000
"""The operations per multi, which must stay below ``jute.maxbuffer``."""


class ControllerMoved(BrokerError):
    """Another broker is the controller, or has been in the meantime."""


def election_writes(claim: Create, epoch: SetData) -> list[list[Write]]:
    """The transactions that elect a controller: a single one, with the claim and the next epoch.

    Either both are written or none, and the epoch only if it has not changed since it was read
    (KAFKA-6082).
    """
    return [[claim, epoch]]


class Holder(NamedTuple):
    """The current controller."""

    broker_id: BrokerId
    is_me: bool
    """Whether this session owns the claim."""


class ControllerZnodes:
    """The controller's reads and writes of znodes in one ZooKeeper session."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk
        self.epoch: Epoch = 0
        """The controller epoch of the latest claim."""
        self._epoch_zk_version = -1

    # The election.

    async def holder(self, watch: Watch) -> Holder | None:
        """Return the current controller, None if there is none; the watch fires on a change."""
        path = zk_paths.CONTROLLER
        while True:
            try:
                data, stat = await self._insist(lambda: self._zk.get(path, watch))
            except NoNode:
                if await self._insist(lambda: self._zk.exists(path, watch)) is None:
                    return None
                continue
            try:
                broker_id = zk_paths.decode(path, data, zk_paths.ControllerZnode).brokerid
            except zk_paths.BadZnode as error:
                LOG.error("the controller's znode cannot be read: %s", error)
                broker_id = -1
            return Holder(broker_id, stat.ephemeral_owner == self._zk.session_id)

    async def claim(self, broker_id: BrokerId, timestamp_ms: int) -> bool:
        """Claim to be the controller of the next epoch; False if another broker won.

        No two controllers have the same epoch.
        """
        epoch, version = await self._stored_epoch()
        znode = zk_paths.ControllerZnode(brokerid=broker_id, timestamp=str(timestamp_ms))
        claim = Create(zk_paths.CONTROLLER, zk_paths.encode(znode), ephemeral=True)
        raised = SetData(zk_paths.CONTROLLER_EPOCH, str(epoch + 1).encode(), version)
        await failpoints.point(failpoints.CONTROLLER_CLAIM)
        try:
            for writes in election_writes(claim, raised):
                *_, stat = await self._zk.multi(writes)
        except MultiFailed as error:
            LOG.info("another broker became the controller: %s", error)
            return False
        except ConnectionLoss:
            return False  # the next step reads the holder, which may be this session
        assert isinstance(stat, Stat), "a write returns the znode's Stat"
        self.epoch, self._epoch_zk_version = epoch + 1, stat.version
        return True

    async def adopt(self) -> None:
        """Continue with a claim of this session whose response was lost.

        No other broker can have raised the epoch: that needs a claim, and only one can exist.
        """
        self.epoch, self._epoch_zk_version = await self._stored_epoch()

    async def abdicate(self) -> None:
        """Delete this session's claim, if it exists."""
        path = zk_paths.CONTROLLER
        found = await self._insist(lambda: self._zk.exists(path))
        if found is not None and found.ephemeral_owner == self._zk.session_id:
            await self._unless_gone(lambda: self._zk.delete(path, found.version))

    async def _stored_epoch(self) -> tuple[Epoch, int]:
        path = zk_paths.CONTROLLER_EPOCH
        while True:
            try:
                data, stat = await self._insist(lambda: self._zk.get(path))
            except NoNode:
                try:
                    await self._insist(lambda: self._zk.create(path, b"0"))
                except NodeExists:
                    LOG.debug("%s was created by another broker", path)
                continue
            try:
                return int(data), stat.version
            except ValueError:
                raise zk_paths.BadZnode(f"{path}: {data!r} is not a number") from None

    # Reads. Each is repeated until it succeeds.

    async def brokers(self, watch: Watch) -> dict[BrokerId, BrokerInfo]:
        """Return the registered brokers."""
        names = await self._insist(lambda: self._zk.children(zk_paths.BROKER_IDS, watch))
        found = await asyncio.gather(*(self._broker(int(name)) for name in names))
        return {broker.id: broker for broker in sorted(filter(None, found), key=lambda b: b.id)}

    async def _broker(self, number: BrokerId) -> BrokerInfo | None:
        path = zk_paths.broker(number)
        try:
            data, stat = await self._insist(lambda: self._zk.get(path))
            znode = zk_paths.decode(path, data, zk_paths.BrokerZnode)
            endpoints = tuple(parse_endpoint(text) for text in znode.endpoints)
        except NoNode:
            return None  # gone since
        except (zk_paths.BadZnode, ConfigError) as error:
            LOG.error("a broker is ignored, since its registration cannot be read: %s", error)
            return None
        return BrokerInfo(number, stat.czxid, endpoints, znode.rack)

    async def topics(self, watch: Watch) -> list[str]:
        """Return the names of all topics."""
        return await self._insist(lambda: self._zk.children(zk_paths.TOPICS, watch))

    async def assignment(self, topic: str, watch: Watch) -> Assignment | None:
        """Return the replicas of each partition; None if the topic does not exist."""
        path = zk_paths.topic(topic)
        try:
            data, _ = await self._insist(lambda: self._zk.get(path, watch))
            return _assignment(path, data)
        except NoNode:
            return None
        except zk_paths.BadZnode as error:
            LOG.error("a topic is ignored, since it cannot be read: %s", error)
            return None

    async def leadership(self, tp: TopicPartition) -> Leadership | None:
        """Return a partition's state; None if it never had one. Raises ControllerMoved."""
        path = zk_paths.state(tp)
        try:
            data, stat = await self._insist(lambda: self._zk.get(path))
            znode = zk_paths.decode(path, data, zk_paths.StateZnode)
        except NoNode:
            return None
        except zk_paths.BadZnode as error:
            LOG.error("a partition is not changed, since its state cannot be read: %s", error)
            return None
        if znode.controller_epoch > self.epoch:
            raise ControllerMoved(
                f"the state of {tp} was written by a controller of the later epoch "
                f"{znode.controller_epoch}"
            )
        return Leadership(
            znode.leader,
            znode.leader_epoch,
            tuple(znode.isr),
            znode.controller_epoch,
            stat.version,
            stat.mzxid,
        )

    async def leaderships(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Leadership]:
        """Return the states of those partitions that have one."""
        found = await asyncio.gather(*(self.leadership(tp) for tp in partitions))
        return {tp: state for tp, state in zip(partitions, found, strict=True) if state is not None}

    async def settings(self, topic: str) -> dict[str, str]:
        """Return a topic's configuration overrides."""
        path = zk_paths.topic_config(topic)
        try:
            data, _ = await self._insist(lambda: self._zk.get(path))
            return zk_paths.decode(path, data, zk_paths.ConfigZnode).config
        except (NoNode, zk_paths.BadZnode):
            return {}

    async def deletions(self, watch: Watch) -> list[str]:
        """Return the topics whose deletion was requested."""
        return await self._insist(lambda: self._zk.children(zk_paths.DELETE_TOPICS, watch))

    async def admin_requests(self, watch: Watch) -> list[str]:
        """Return the paths below ``/admin``, the requests of tools among them."""
        names = await self._insist(lambda: self._zk.children(zk_paths.ADMIN, watch))
        return [f"{zk_paths.ADMIN}/{name}" for name in names]

    async def admin_request(self, path: str) -> bytes | None:
        """Return the content of a request; None if it was removed."""
        try:
            data, _ = await self._insist(lambda: self._zk.get(path))
        except NoNode:
            return None
        return data

    async def isr_changes(self, watch: Watch) -> dict[str, list[TopicPartition]]:
        """Return the leaders' notifications of ISR changes: znode path to partitions."""
        notices = await self._notices(zk_paths.ISR_CHANGES, zk_paths.IsrChangeZnode, watch)
        return {
            path: [TopicPartition(row.topic, row.partition) for row in notice.partitions]
            if notice is not None
            else []
            for path, notice in notices.items()
        }

    async def log_dir_events(self, watch: Watch) -> dict[str, BrokerId | None]:
        """Return the notifications of failed log directories: znode path to broker."""
        notices = await self._notices(zk_paths.LOG_DIR_EVENTS, zk_paths.LogDirEventZnode, watch)
        return {path: None if notice is None else notice.broker for path, notice in notices.items()}

    async def _notices(self, parent: str, kind: type[S], watch: Watch) -> dict[str, S | None]:
        """Return the notifications below a znode by their paths; None: it cannot be read."""
        names = await self._insist(lambda: self._zk.children(parent, watch))
        notices: dict[str, S | None] = {}
        for name in names:
            path = f"{parent}/{name}"
            try:
                data, _ = await self._insist(partial(self._zk.get, path))
                notices[path] = zk_paths.decode(path, data, kind)
            except (NoNode, zk_paths.BadZnode) as error:
                LOG.warning("an invalid notification is skipped: %s", error)
                notices[path] = None
        return notices

    # Writes. Each is fenced by the controller epoch and can raise ControllerMoved.

    async def change(self, tp: TopicPartition, wanted: Leadership) -> Leadership | None:
        """Write a partition's new state if its znode still has the version in ``wanted``.

        Returns the state as written; None if another writer was faster, so that the state must be
        read again.
        """
        write = SetData(zk_paths.state(tp), _state_data(wanted), wanted.zk_version)
        try:
            _, stat = await self._fenced([write])
        except (BadVersion, NoNode):
            return None
        except ConnectionLoss:
            return await self._if_written(tp, wanted)
        assert isinstance(stat, Stat), "a write returns the znode's Stat"
        return replace(wanted, zk_version=stat.version, zxid=stat.mzxid)

    async def begin(self, tp: TopicPartition, wanted: Leadership) -> Leadership | None:
        """Write a partition's first state; return what is stored then, whichever writer wins."""
        for parent in (zk_paths.partitions(tp.topic), zk_paths.partition(tp)):
            await self._unless_there(parent)
        while True:
            try:
                await self._fenced([Create(zk_paths.state(tp), _state_data(wanted))])
            except (NodeExists, NoNode):
                return await self.leadership(tp)
            except ConnectionLoss:
                await self._zk.connected()
            else:
                return wanted

    async def create_topic(self, name: str, topic: NewTopic) -> bool:
        """Write a new topic with its settings; False if a topic of that name exists."""
        config = zk_paths.ConfigZnode(config=dict(topic.settings))
        znode = _topic_data(Assignment(topic.assignment, topic_id=topic.topic_id))
        path, settings_path = zk_paths.topic(name), zk_paths.topic_config(name)
        is_doubtful = False
        while True:
            # Settings left behind by a deleted topic of this name must not apply to the new one.
            there = await self._insist(lambda: self._zk.exists(settings_path)) is not None
            settings: Write = (SetData if there else Create)(settings_path, zk_paths.encode(config))
            try:
                await self._fenced([settings, Create(path, znode)])
            except (NodeExists, NoNode, ConnectionLoss) as error:
                # The server of the next connection may not have applied the write yet.
                is_doubtful = is_doubtful or isinstance(error, ConnectionLoss)
                if await self._insist(lambda: self._zk.exists(path)) is not None:
                    return is_doubtful
            else:
                return True

    async def write_assignment(
        self, topic: str, change: Callable[[Assignment], Assignment]
    ) -> Assignment | None:
        """Apply ``change`` to a topic's current replicas and write the result.

        ``change`` may be called more than once. Returns the assignment that is stored then; None:
        there is no such topic.
        """
        path = zk_paths.topic(topic)
        while True:
            try:
                data, stat = await self._insist(lambda: self._zk.get(path))
                before = _assignment(path, data)
                after = change(before)
                if after != before:
                    await self._fenced([SetData(path, _topic_data(after), stat.version)])
            except NoNode:
                return None
            except BadVersion:
                continue
            except ConnectionLoss:
                await self._zk.connected()
            else:
                return after

    async def ask_deletion(self, topic: str) -> None:
        """Record the request to delete a topic."""
        path = zk_paths.delete_topic(topic)
        while True:
            try:
                await self._fenced([Create(path)])
            except NodeExists:
                return
            except ConnectionLoss:
                await self._zk.connected()
            else:
                return

    async def forget_deletion(self, topic: str) -> None:
        """Remove a deletion request: its topic does not exist, or deletion is disabled."""
        await self._unless_gone(lambda: self._fenced([Delete(zk_paths.delete_topic(topic))]))

    async def rewrite_admin_request(self, path: str, data: bytes | None) -> None:
        """Replace the content of a tool's request, or remove the request (None)."""
        write: Write = Delete(path) if data is None else SetData(path, data)
        await self._unless_gone(lambda: self._fenced([write]))

    async def remove_topic(self, topic: str) -> None:
        """Remove all znodes of a topic, the deletion request last."""
        while True:
            try:
                writes = await self._removal(topic)
                for start in range(0, len(writes), _WRITES_MAX):
                    await self._fenced(writes[start : start + _WRITES_MAX])
            except NoNode:
                continue  # another writer removed a znode in the meantime
            except ConnectionLoss:
                await self._zk.connected()
            else:
                return

    async def _removal(self, topic: str) -> list[Delete]:
        top = zk_paths.topic(topic)
        rest = (top, zk_paths.topic_config(topic), zk_paths.delete_topic(topic))
        return [
            Delete(path)
            for path in [*await self._below(top), *rest]
            if await self._zk.exists(path) is not None
        ]

    async def _below(self, path: str) -> list[str]:
        """Return all paths below this one, children before parents."""
        try:
            names = await self._zk.children(path)
        except NoNode:
            return []
        paths = []
        for name in names:
            paths += [*await self._below(f"{path}/{name}"), f"{path}/{name}"]
        return paths

    async def forget_notices(self, paths: Iterable[str]) -> None:
        """Delete notifications that have been handled."""
        for path in paths:
            await self._unless_gone(partial(self._zk.delete, path))

    async def _fenced(self, writes: Sequence[Write]) -> list[MultiResult]:
        """Apply all writes while the claim stands, else raise ControllerMoved.

        If a write fails, its error is raised.
        """
        try:
            return await self._zk.multi(
                [Check(zk_paths.CONTROLLER_EPOCH, self._epoch_zk_version), *writes]
            )
        except MultiFailed as error:
            if error.index == 0:
                raise ControllerMoved(f"controller epoch {self.epoch} has ended") from error
            raise error.error from error

    async def _if_written(self, tp: TopicPartition, wanted: Leadership) -> Leadership | None:
        """Return the state after a lost connection if it is the one that was to be written."""
        # The server of the next connection may not have applied the write yet.
        await self._insist(lambda: self._zk.sync(zk_paths.state(tp)))
        found = await self.leadership(tp)
        if found is not None and replace(found, zk_version=wanted.zk_version) == wanted:
            return found
        return None

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request after each lost connection; it must be safe to apply twice."""
        while True:
            try:
                return await ask()
            except ConnectionLoss:
                await self._zk.connected()

    async def _unless_there(self, path: str) -> None:
        try:
            await self._insist(lambda: self._zk.create(path))
        except NodeExists:
            LOG.debug("the znode %s already exists", path)

    async def _unless_gone(self, delete: Callable[[], Awaitable[object]]) -> None:
        try:
            await self._insist(delete)
        except (NoNode, BadVersion):
            LOG.debug("the znode is already deleted")


def _state_data(state: Leadership) -> bytes:
    return zk_paths.encode(
        zk_paths.StateZnode(
            controller_epoch=state.controller_epoch,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=list(state.isr),
        )
    )


def _assignment(path: str, data: bytes) -> Assignment:
    znode = zk_paths.decode(path, data, zk_paths.TopicZnode)
    try:
        names = sorted(map(int, znode.partitions))
    except ValueError as error:
        raise zk_paths.BadZnode(f"{path}: {error}") from error
    moves = {}
    for number in names:
        adding = tuple(znode.adding_replicas.get(str(number), ()))
        removing = tuple(znode.removing_replicas.get(str(number), ()))
        if adding or removing:
            moves[number] = Move(adding, removing)
    replicas = {number: tuple(znode.partitions[str(number)]) for number in names}
    topic_id = None if znode.topic_id is msgspec.UNSET else _topic_id(path, znode.topic_id)
    return Assignment(replicas, moves, topic_id)


def _topic_id(path: str, text: str) -> UUID:
    try:
        return topic_ids.from_text(text)
    except ValueError as error:
        raise zk_paths.BadZnode(f"{path}: {error}") from error


def _topic_data(assignment: Assignment) -> bytes:
    topic_id = assignment.topic_id
    return zk_paths.encode(
        zk_paths.TopicZnode(
            partitions={str(n): list(replicas) for n, replicas in assignment.replicas.items()},
            adding_replicas={str(n): list(each.adding) for n, each in assignment.moves.items()},
            removing_replicas={str(n): list(each.removing) for n, each in assignment.moves.items()},
            topic_id=msgspec.UNSET if topic_id is None else topic_ids.to_text(topic_id),
        )
    )
