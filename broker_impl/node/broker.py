"""A broker: the tasks, connections and files that drive the pure state machines.

Startup: ZooKeeper session → data directories locked and recovered → listeners → registered → the
controller's orders arrive → clients are served. A stop is a controlled shutdown. A disk failure or
a broken invariant ends the broker at once and leaves the rest to recovery.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TypeVar
from uuid import UUID

from broker_impl.api.cluster_view import ClusterView
from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.purgatory import Waiting
from broker_impl.api.registry import CloseConnection
from broker_impl.api.services import Controller
from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.counts import Counts
from broker_impl.errors import DirectoryFailed
from broker_impl.log.disk import Disk
from broker_impl.log.manager import LogManager
from broker_impl.node import config_changes, opening, registration, zk_answers
from broker_impl.node.cleaner import Cleaner
from broker_impl.node.controller import ControllerConfig, ControllerRuntime
from broker_impl.node.controller_client import ControllerClient
from broker_impl.node.coordinators.group_coordinator import GroupsRuntime
from broker_impl.node.coordinators.internal_topics import InternalTopics
from broker_impl.node.coordinators.producer_ids import ProducerIds
from broker_impl.node.coordinators.transaction_coordinator import Transactions
from broker_impl.node.directory_failures import DirectoryFailures
from broker_impl.node.effects import Effects
from broker_impl.node.fetcher import Fetchers
from broker_impl.node.isr_writer import IsrWriter
from broker_impl.node.log_mover import LogMover
from broker_impl.node.peers import Peers
from broker_impl.node.quotas import QuotasRuntime
from broker_impl.node.security import Security
from broker_impl.node.session import Session, persist
from broker_impl.node.settings_reader import SettingsReader
from broker_impl.node.snapshot import BrokerSnapshot, SnapshotReader
from broker_impl.node.tasks import Tasks
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.replica.replicas import Replicas
from broker_impl.server import Server
from broker_impl.server.connection import Witness
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.errors import ZooKeeperError

LOG = logging.getLogger(__name__)

T = TypeVar("T")

_STOP_BOUND_S = 6.0
"""The limit for a controlled shutdown; the flush that follows has the rest of ten seconds."""
_SESSION_CLOSE_BOUND_S = 1.0
"""The limit for closing the ZooKeeper session; after that it is left to expire."""


class Broker:
    """One broker of a cluster; it implements ``Services`` for its request handlers."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        disks: Mapping[str, Disk],
        rng: random.Random,
        wall_ms: Callable[[], int],
        reuse_port: bool = False,
        host_name: Callable[[], str] = lambda: "localhost",
    ) -> None:
        """``disks``: each data directory by its name in ``log.dirs``, in that order.

        ``host_name``: the host that clients connect to if a listener names none.
        """
        self._config = config
        self._disks = disks
        self._rng = rng
        self._wall_ms = wall_ms
        self._reuse_port = reuse_port
        self._host_name = host_name
        self._session = Session(config, rng)
        self._cluster_id = ""
        self._counts = Counts()
        self._view = ClusterView()
        self._sessions = FetchSessions(
            config.max_incremental_fetch_session_cache_slots,
            rng,
            lambda tp, event: self._replicas.follower_kept_up(tp, event),
            lambda number: self._effects.session_ended(number),
        )
        self._waiting = Waiting(self._sessions.holders)
        self._settings = TopicSettings(config, lambda: self._session.zk)
        self._security = Security(config, rng, lambda: self._session.zk, wall_ms)
        self._quotas = QuotasRuntime(config, self._settings, lambda: self._session.zk, wall_ms)
        kept = self._settings, self._quotas, self._security
        self._reader = SettingsReader(config, *kept, lambda: self._session.zk, self._obey_settings)
        self._producer_ids = ProducerIds(config.broker_id, lambda: self._session.zk)
        self._all_peers: list[Peers] = []
        self._controller_peers = self._peers("controller")
        self._fetcher_peers = self._peers("fetcher")
        self._controller_client_peers = self._peers("errands")
        self._transaction_peers = self._peers("transactions")
        self._controller_client = ControllerClient(
            config, self._controller_client_peers, self._view, lambda: self._controller
        )
        users, rules = self._security.credentials, self._security.authorizer
        keys = self._security.key_stores
        self._server = Server(self, config, self.fail, users, rules, keys)
        self._listening: list[Endpoint] = []
        self._tasks = Tasks(self.fail)
        self._starting: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._logs: LogManager
        self._logs_are_open = False
        self._replicas: Replicas
        self._groups: GroupsRuntime
        self._transactions: Transactions
        self._isr_writer: IsrWriter
        self._fetchers: Fetchers
        self._effects: Effects
        self._controller: ControllerRuntime
        self._controller_task: asyncio.Task[None] | None = None
        self._on_groups_loaded: Callable[[TopicPartition], None] = lambda tp: None
        self._settings_task: asyncio.Task[None] | None = None

    def _peers(self, purpose: str) -> Peers:
        client_id = f"broker-{self._config.broker_id}-{purpose}"
        peers = Peers(client_id, self._config.peer_overrides, self._security.peers)
        self._all_peers.append(peers)
        return peers

    # Services.

    @property
    def config(self) -> BrokerConfig:
        return self._settings.base

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    @property
    def replicas(self) -> Replicas:
        return self._replicas

    @property
    def view(self) -> ClusterView:
        return self._view

    @property
    def waiting(self) -> Waiting:
        return self._waiting

    @property
    def sessions(self) -> FetchSessions:
        return self._sessions

    @property
    def controller(self) -> Controller:
        return self._controller

    @property
    def groups(self) -> GroupsRuntime:
        return self._groups

    @property
    def transactions(self) -> Transactions:
        return self._transactions

    @property
    def quotas(self) -> QuotasRuntime:
        return self._quotas

    @property
    def security(self) -> Security:
        return self._security

    @property
    def counts(self) -> Counts:
        return self._counts

    async def topic_settings(self, topic: str) -> dict[str, str]:
        return await self._read(partial(self._settings.read, topic))

    async def settings_of(self, entity: str) -> dict[str, str]:
        return await self._read(lambda: config_changes.read(self._session.zk, entity))

    async def alter_settings(self, entity: str, alter: config_changes.Alter) -> None:
        change = partial(config_changes.alter, entity=entity, change=alter, now_ms=self._wall_ms())
        timeout_s = self._config.request_timeout_ms / 1000
        await zk_answers.write(lambda: self._session.zk, change, timeout_s)
        await self._read(partial(self._reader.changed, entity))

    async def _read(self, ask: Callable[[], Coroutine[None, None, T]]) -> T:
        return await zk_answers.read(ask, self._config.request_timeout_ms / 1000)

    async def settle_topics(self, topics: Mapping[str, UUID]) -> None:
        outdated = self._settings.outdated(topics, self._logs.logs)
        keep = partial(self._settings.keep_newest, outdated)
        if outdated and not await persist(keep, until=self._stopping):
            raise CloseConnection("stopping")

    def forget_topics(self, topics: Iterable[str]) -> None:
        hosted = {tp.topic for tp in self._logs.logs}
        for topic in topics:
            if topic not in hosted:
                self._settings.forget(topic)
                self._counts.forget(topic)

    def create_in_background(self, topics: Iterable[str]) -> None:
        if self._controller_client.request_creation(topics):
            self._tasks.start(self._controller_client.create())

    async def next_producer_id(self) -> int:
        return await self._producer_ids.next()

    def view_changed(self) -> None:
        listener = self._config.inter_broker_listener()
        addresses = {
            broker.id: broker.endpoints[listener]
            for broker in self._view.brokers.values()
            if listener in broker.endpoints
        }
        self._fetcher_peers.update(addresses)
        self._controller_client_peers.update(addresses)
        self._transaction_peers.update(addresses)
        self._replicas.on_metadata_live_brokers(dict.fromkeys(addresses, -1))
        self._fetchers.wake()
        if self._view.is_whole:
            self._server.open_to_clients()

    # Start and stop.

    async def start(self) -> list[Endpoint] | None:
        """Start the broker up to its registration, and return the endpoints on which it listens.

        Returns None if it was stopped before; ``run`` then completes the stop. Raises the error
        that prevents the start, with nothing left running.
        """
        self._starting = asyncio.get_running_loop().create_task(self._start())
        try:
            await self._starting
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            return None
        except BaseException:
            await self._end()
            await self._close_session()
            raise
        return self._listening

    async def run(self) -> None:
        """Serve until stopped; raises the failure that ended the broker."""
        await self._stopping.wait()
        if self._failure is None:
            await self._hand_over()
        await self._end()
        if self._failure is None and self._logs_are_open:
            self._logs.close(self._replicas.high_watermarks())
        await self._close_session()
        if self._failure is not None:
            raise self._failure
        LOG.info("stopped")

    def stop(self) -> None:
        """Start a controlled shutdown."""
        self._stopping.set()
        if self._starting is not None:
            self._starting.cancel()

    def fail(self, error: BaseException) -> None:
        """Stop the broker because of an error: at once, without a clean-shutdown marker."""
        if isinstance(error, DirectoryFailed) and self._logs_are_open and self._logs.goes_on:
            return
        if self._failure is None:
            self._failure = error
        self.stop()

    async def _start(self) -> None:
        config = self._config
        await self._session.open()
        await self._until_done(self._session.prepare)
        await self._until_done(self._read_cluster)
        await self._until_done(self._reader.read_all)
        self._open_logs()
        for endpoint in config.endpoints():
            self._listening.append(await self._server.listen(endpoint, reuse_port=self._reuse_port))
        await self._until_done(self._register)
        self._start_controller()
        self._follow_settings()
        self._tasks.start(self._keep_session())
        self._tasks.every(config.replica_lag_time_max_ms / 2, self._replicas.tick)
        self._tasks.every(config.replica_high_watermark_checkpoint_interval_ms, self._checkpoint)
        self._tasks.every(config.log_flush_offset_checkpoint_interval_ms, self._checkpoint)
        self._tasks.every(config.log_flush_scheduler_interval_ms, self._maintain_logs)
        parts = self._logs, self._replicas, lambda: self._settings.base, self._wall_ms
        if config.log_cleaner_enable:
            self._tasks.start(Cleaner(*parts).run())
        if len(self._disks) > 1:
            self._tasks.start(LogMover(*parts).run())
        self._server.open_to_brokers()
        LOG.info("broker %d started on %s", config.broker_id, ", ".join(map(str, self._listening)))

    def _open_logs(self) -> None:
        config = self._config
        self._logs = opening.logs(
            self._disks, config, self._settings.merged, self._cluster_id, self._wall_ms()
        )
        self._replicas = opening.replicas(
            self._logs,
            config,
            self._settings.merged,
            wall_ms=self._wall_ms,
            on_effect=lambda effect: self._effects.carry_out(effect),
        )
        zk = lambda: self._session.zk  # noqa: E731
        DirectoryFailures(self._logs, self._replicas, zk, self._tasks, self._stopping, self.fail)
        internal_topics = partial(
            InternalTopics,
            self._replicas,
            self._waiting,
            wall_ms=self._wall_ms,
            on_failure=self.fail,
        )
        self._groups = GroupsRuntime(
            config,
            internal_topics(
                timeout_s=config.offsets_commit_timeout_ms / 1000,
                load_bytes=config.offsets_load_buffer_size,
            ),
            rng=self._rng,
            wall_ms=self._wall_ms,
            on_failure=self.fail,
            on_loaded=lambda tp: self._on_groups_loaded(tp),
        )
        self._transactions = Transactions(
            config,
            internal_topics(
                timeout_s=config.request_timeout_ms / 1000,
                load_bytes=config.transaction_state_log_load_buffer_size,
            ),
            self._transaction_peers,
            self._view,
            self._producer_ids,
            wall_ms=self._wall_ms,
            on_failure=self.fail,
        )
        self._isr_writer = IsrWriter(self._replicas, zk, self.fail, self._waiting.notify)
        following, counts = self._quotas.following, self._counts
        self._fetchers = Fetchers(
            self._replicas, self._fetcher_peers, config, following, counts, self.fail
        )
        self._effects = Effects(
            self._waiting,
            self._sessions,
            self._logs,
            self._groups,
            self._transactions,
            self._isr_writer,
            self._fetchers,
            self._counts,
        )
        self._logs_are_open = True

    async def _hand_over(self) -> None:
        """Have the controller move this broker's leaderships, if a controller is reachable."""
        LOG.info("controlled shutdown")
        if not self._config.controlled_shutdown_enable or self._controller_task is None:
            return
        await self._controller_client.hand_over(self._session.broker_epoch, _STOP_BOUND_S)

    async def _end(self) -> None:
        """Stop serving and sending requests; logs and the session stay open."""
        self._tasks.cancel()
        if self._logs_are_open:
            await self._fetchers.close()
            await self._isr_writer.close()
            await self._groups.close()
            await self._transactions.close()
        for peers in self._all_peers:
            peers.close()
        await self._server.close()
        await self._tasks.ended()

    async def _close_session(self) -> None:
        """Close the session, so that other brokers need not wait until it expires."""
        try:
            async with asyncio.timeout(_SESSION_CLOSE_BOUND_S):
                await self._session.close()
        except (TimeoutError, ZooKeeperError) as error:
            LOG.info("the session could not be closed, and will expire: %s", repr(error))

    # ZooKeeper.

    async def _until_done(self, action: Callable[[], Coroutine[None, None, None]]) -> None:
        """Repeat an action until it succeeds, with a new session whenever one expires."""
        while not await persist(action, until=self._session.expired):
            await self._session.open()

    async def _read_cluster(self) -> None:
        zk = self._session.zk
        self._cluster_id = await registration.cluster_id(zk, self._rng)
        self._config = await registration.with_internal_topic_sizes(zk, self._config)

    async def _register(self) -> None:
        endpoints = registration.advertised(self._config, self._listening, self._host_name)
        znode = registration.znode(self._config, endpoints, self._wall_ms())
        await self._session.register(znode)
        self._replicas.broker_epoch = self._session.broker_epoch

    def _start_controller(self) -> None:
        config = self._config
        self._controller = ControllerRuntime(
            broker_id=config.broker_id,
            zk=self._session.zk,
            peers=self._controller_peers,
            config=ControllerConfig.of(config, lambda: self._settings.base),
            wall_ms=self._wall_ms,
            rng=self._rng,
            counts=self._counts,
        )
        self._controller_task = self._tasks.start(self._controller.run())

    async def _keep_session(self) -> None:
        """Replace each session that expires, until the broker stops."""
        while True:
            await self._session.expired.wait()
            LOG.warning("the ZooKeeper session expired")
            self._counts.expired_sessions += 1
            assert self._controller_task is not None, "the task is started with the session"
            assert self._settings_task is not None, "the task is started with the session"
            ended = self._controller_task, self._settings_task
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
            await self._session.open()
            await self._until_done(self._register)
            self._start_controller()
            self._follow_settings()

    # Settings.

    def _follow_settings(self) -> None:
        self._settings_task = self._tasks.start(self._security.follow(self._reader.follow()))

    def _obey_settings(self, topic: str | None) -> None:
        """Apply the settings of one topic, or of all."""
        if not self._logs_are_open:
            return
        self._logs.reconfigure(topic)
        topics = [topic] if topic is not None else [tp.topic for tp in self._replicas.partitions]
        for each in dict.fromkeys(topics):
            self._replicas.configured(each)
        if self._controller_task is not None:
            self._controller.settings_changed()

    # Snapshots and metrics.

    def show(self, answers: Witness, loaded: Callable[[TopicPartition], None]) -> None:
        """Call ``answers`` with every request and answer, and ``loaded`` after loading groups."""
        self._server.witness, self._on_groups_loaded = answers, loaded

    def snapshot(
        self, reader: SnapshotReader, *, producers: bool = False, settings: bool = False
    ) -> BrokerSnapshot | None:
        """The broker's state (``broker_impl.node.snapshot``); None before its logs are open."""
        if not self._logs_are_open:
            return None
        reigns = self._controller_task is not None and self._controller.is_active
        return reader.look(
            *(self._replicas, self._logs.logs, self._view),
            term=self._controller.controller_epoch if reigns else None,
            producers=producers,
            unmarked=self._transactions.unmarked(),
            settings=self._settings if settings else None,
        )

    def connections(self) -> dict[str, int]:
        """The number of open connections, by listener."""
        return self._server.connection_counts()

    # Periodic tasks.

    def _checkpoint(self) -> None:
        self._logs.checkpoint(self._replicas.high_watermarks())

    def _maintain_logs(self) -> None:
        for tp in self._logs.tick(self._wall_ms(), self._replicas.high_watermarks()):
            self._replicas.start_moved(tp)
            self._sessions.changed(tp)
