"""A broker: the pure parts, and the tasks, connections and files that move them.

Life: data directory locked and recovered → ZooKeeper session → listeners → registered → orders of
the controller come in → clients are served. A stop is a controlled one; a failure of the disk or a
broken invariant ends the broker at once and leaves the rest to recovery.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, assert_never

from broker_impl.api.cluster_view import ClusterView
from broker_impl.api.services import Controller
from broker_impl.api.waiting import Waiting
from broker_impl.config import BrokerConfig, Endpoint
from broker_impl.errors import ConfigError, StorageError
from broker_impl.log.config import LogConfig
from broker_impl.log.disk import Disk
from broker_impl.log.manager import LogManager
from broker_impl.node import zk_paths
from broker_impl.node.controller import ControllerConfig, ControllerRuntime
from broker_impl.node.fetcher import Fetchers
from broker_impl.node.isr_writer import IsrWriter
from broker_impl.node.peers import PeerError, Peers
from broker_impl.node.producer_ids import ProducerIds
from broker_impl.node.session import Session, persist
from broker_impl.replica.events import (
    AppendDone,
    Effect,
    HighWatermarkAdvanced,
    IsrChanged,
    LeadershipLost,
    LogEndAdvanced,
    RefreshIsr,
    StartFetching,
    StopFetching,
    WriteIsr,
)
from broker_impl.replica.replicas import ReplicaConfig, Replicas
from broker_impl.server import Server
from broker_impl.wire import batch
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.controlled_shutdown_response import ControlledShutdownResponse
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.errors import NodeExists, NoNode, ZooKeeperError

LOG = logging.getLogger(__name__)

_CREATE_TIMEOUT_MS = 10_000
_STOP_BOUND_S = 6.0
"""What a controlled shutdown may take; the flush that follows has the rest of ten seconds."""


class Broker:
    """One broker of a cluster; also what its request handlers call ``Services``."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        disk: Disk,
        rng: random.Random,
        wall_ms: Callable[[], int],
        reuse_port: bool = False,
    ) -> None:
        self._config = config
        self._disk = disk
        self._rng = rng
        self._wall_ms = wall_ms
        self._reuse_port = reuse_port
        self._session = Session(
            config.zookeeper_connect,
            timeout_ms=config.zookeeper_session_timeout_ms,
            broker_id=config.broker_id,
            rng=rng,
        )
        self._cluster_id = ""
        self._view = ClusterView()
        self._waiting = Waiting()
        self._topic_settings: dict[str, dict[str, str]] = {}
        self._producer_ids = ProducerIds(config.broker_id, lambda: self._session.zk)
        client_id = f"broker-{config.broker_id}"
        self._controller_peers = Peers(f"{client_id}-controller", config.peer_overrides)
        self._fetcher_peers = Peers(f"{client_id}-fetcher", config.peer_overrides)
        self._errand_peers = Peers(f"{client_id}-errands", config.peer_overrides)
        self._server = Server(self, config, self.fail)
        self._listening: list[Endpoint] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None
        self._moved: dict[TopicPartition, None] = {}
        self._creating: dict[str, None] = {}
        self._registered = asyncio.Event()
        self._logs: LogManager
        self._replicas: Replicas
        self._isr_writer: IsrWriter
        self._fetchers: Fetchers
        self._controller: ControllerRuntime

    # Services.

    @property
    def config(self) -> BrokerConfig:
        return self._config

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
    def controller(self) -> Controller:
        return self._controller

    def topic_settings(self, topic: str) -> dict[str, str]:
        return self._topic_settings.get(topic, {})

    async def load_topic_settings(self, topics: Sequence[str]) -> None:
        for topic in topics:
            if topic not in self._topic_settings:
                await persist(partial(self._load, topic), until=self._stopping)

    def create_in_background(self, topics: Iterable[str]) -> None:
        for topic in topics:
            if topic not in self._creating:
                self._creating[topic] = None
                self._spawn(self._create(topic))

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
        self._errand_peers.update(addresses)
        self._replicas.on_metadata_live_brokers(dict.fromkeys(addresses, -1))
        self._fetchers.wake()
        self._server.open_to_clients()

    # Life.

    async def start(self) -> list[Endpoint]:
        """Up to being registered; the answer is where this broker listens."""
        config = self._config
        await self._session.open()
        await self._until_done(self._session.prepare)
        await self._until_done(self._find_cluster_id)
        await self._until_done(self._load_all_settings)
        self._open_logs()
        for endpoint in config.endpoints():
            self._listening.append(await self._server.listen(endpoint, reuse_port=self._reuse_port))
        await self._until_done(self._register)
        self._start_controller()
        self._spawn(self._keep_session())
        self._every(config.replica_lag_time_max_ms / 2, self._replicas.tick)
        self._every(config.replica_high_watermark_checkpoint_interval_ms, self._checkpoint)
        self._every(config.log_flush_scheduler_interval_ms, self._tend_logs)
        self._registered.set()
        LOG.info("broker %d started on %s", config.broker_id, ", ".join(map(str, self._listening)))
        return self._listening

    async def run(self) -> None:
        """Serve until told to stop; raises what made it impossible to go on."""
        await self._stopping.wait()
        if self._failure is not None:
            await self._end()
            raise self._failure
        await self._shut_down()

    def stop(self) -> None:
        """Begin a controlled shutdown."""
        self._stopping.set()

    def fail(self, error: BaseException) -> None:
        """Begin to end at once, without a clean marker."""
        if self._failure is None:
            self._failure = error
        self._stopping.set()

    def _open_logs(self) -> None:
        config = self._config
        self._logs = LogManager(
            self._disk,
            lambda topic: log_config(config.for_topic(self.topic_settings(topic))),
            broker_id=config.broker_id,
            cluster_id=self._cluster_id,
        )
        self._logs.open(self._wall_ms())
        loop = asyncio.get_running_loop()
        self._replicas = Replicas(
            config.broker_id,
            self._logs,
            ReplicaConfig(
                lag_time_max_ms=config.replica_lag_time_max_ms,
                fetch_backoff_ms=config.replica_fetch_backoff_ms,
                min_insync_replicas=lambda topic: (
                    config.for_topic(self.topic_settings(topic)).min_insync_replicas
                ),
            ),
            clock=loop.time,
            wall_ms=self._wall_ms,
            on_effect=self._carry_out,
        )
        self._isr_writer = IsrWriter(self._replicas, lambda: self._session.zk)
        self._fetchers = Fetchers(self._replicas, self._fetcher_peers, config, self.fail)

    async def _shut_down(self) -> None:
        """Move the leaders away, then leave with everything flushed."""
        LOG.info("controlled shutdown")
        if self._config.controlled_shutdown_enable:
            try:
                async with asyncio.timeout(_STOP_BOUND_S):
                    await self._hand_over()
            except TimeoutError:
                LOG.warning("leaders could not be moved in %g s", _STOP_BOUND_S)
        await self._end()
        self._logs.close(self._replicas.high_watermarks())
        try:
            async with asyncio.timeout(1):
                await self._session.close()
        except (TimeoutError, ZooKeeperError) as error:
            LOG.info("the session is left to expire: %s", repr(error))
        LOG.info("stopped")

    async def _end(self) -> None:
        """Stop serving and asking; neither logs nor the session are touched."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        self._fetchers.close()
        self._isr_writer.close()
        for peers in (self._controller_peers, self._fetcher_peers, self._errand_peers):
            peers.close()
        await self._server.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ZooKeeper.

    async def _until_done(self, action: Callable[[], Coroutine[None, None, None]]) -> None:
        """While starting: ZooKeeper may be slow to come up, and sessions may pass by."""
        while not await persist(action, until=self._session.expired):
            await self._session.open()

    async def _find_cluster_id(self) -> None:
        zk, path = self._session.zk, zk_paths.CLUSTER_ID
        fresh = "".join(self._rng.choices(_BASE64URL, k=22))
        try:
            await zk.create(path, zk_paths.encode(zk_paths.ClusterIdZnode(id=fresh)))
        except NodeExists:
            data, _ = await zk.get(path)
            fresh = zk_paths.decode(path, data, zk_paths.ClusterIdZnode).id
        self._cluster_id = fresh

    async def _load_all_settings(self) -> None:
        for topic in await self._session.zk.children(zk_paths.TOPIC_CONFIGS):
            await self._load(topic)

    async def _load(self, topic: str) -> None:
        path = zk_paths.topic_config(topic)
        try:
            data, _ = await self._session.zk.get(path)
        except NoNode:
            self._topic_settings[topic] = {}
            return
        settings = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
        try:
            self._config.for_topic(settings)
        except ConfigError as error:
            LOG.warning("settings of topic %s are not obeyed: %s", topic, error)
            settings = {}
        self._topic_settings[topic] = settings

    async def _register(self) -> None:
        advertised = {endpoint.name: endpoint for endpoint in self._config.advertised()}
        endpoints = [advertised.get(listening.name, listening) for listening in self._listening]
        await self._session.register(
            zk_paths.BrokerZnode(
                host=endpoints[0].host,
                port=endpoints[0].port,
                endpoints=[str(endpoint) for endpoint in endpoints],
                listener_security_protocol_map=self._config.security_protocols(),
                timestamp=str(self._wall_ms()),
                rack=self._config.broker_rack or None,
            )
        )
        self._replicas.broker_epoch = self._session.broker_epoch

    def _start_controller(self) -> None:
        config = self._config
        self._controller = ControllerRuntime(
            broker_id=config.broker_id,
            zk=self._session.zk,
            peers=self._controller_peers,
            config=ControllerConfig.of(config),
            wall_ms=self._wall_ms,
            rng=self._rng,
        )
        self._controller_task = self._spawn(self._controller.run())

    async def _keep_session(self) -> None:
        """A session that expired is followed by another, until the broker stops."""
        while True:
            await self._session.expired.wait()
            LOG.warning("the ZooKeeper session expired")
            self._controller_task.cancel()
            await asyncio.gather(self._controller_task, return_exceptions=True)
            await self._session.open()
            await self._until_done(self._register)
            self._start_controller()

    # Effects of replicas.

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case LogEndAdvanced(tp) | HighWatermarkAdvanced(tp) | LeadershipLost(tp):
                self._poke_soon(tp)
            case WriteIsr():
                self._isr_writer.write(effect)
            case RefreshIsr():
                self._isr_writer.refresh(effect)
            case IsrChanged(tp):
                self._isr_writer.announce(tp)
                self._poke_soon(tp)
            case StartFetching() | StopFetching():
                self._fetchers.wake()
            case AppendDone():
                pass
            case _:
                assert_never(effect)

    def _poke_soon(self, tp: TopicPartition) -> None:
        """Try parked requests once the event that moved the partition is over."""
        if not self._moved:
            asyncio.get_running_loop().call_soon(self._poke)
        self._moved[tp] = None

    def _poke(self) -> None:
        moved, self._moved = self._moved, {}
        try:
            for tp in moved:
                self._waiting.poke(tp)
        except (StorageError, AssertionError) as error:
            self.fail(error)

    # Errands.

    async def _create(self, topic: str) -> None:
        """Create a topic that a client asked about, with the broker's defaults."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=topic,
                    num_partitions=self._config.num_partitions,
                    replication_factor=self._config.default_replication_factor,
                )
            ],
            timeout_ms=_CREATE_TIMEOUT_MS,
        )
        try:
            if self._controller.is_active:
                answer = await self._controller.create_topics(request)
            else:
                answer = await self._errand_peers.request(
                    self._controller.controller_id,
                    request,
                    5,
                    timeout_s=_CREATE_TIMEOUT_MS / 1000 + 1,
                )
            for row in answer.topics:
                LOG.info("topic %s asked for by a client: %s", row.name, row.error_code)
        except PeerError as error:
            LOG.info("topic %s could not be created: %s", topic, error)
        finally:
            del self._creating[topic]

    async def _hand_over(self) -> None:
        """Ask the controller to move our leaders, until none is left or it will not."""
        request = ControlledShutdownRequest(
            broker_id=self._config.broker_id, broker_epoch=self._session.broker_epoch
        )
        for attempt in range(self._config.controlled_shutdown_max_retries + 1):
            if attempt:
                await asyncio.sleep(self._config.controlled_shutdown_retry_backoff_ms / 1000)
            try:
                if self._controller.is_active:
                    answer = await self._controller.controlled_shutdown(request)
                else:
                    answer = await self._errand_peers.request(
                        self._controller.controller_id,
                        request,
                        3,
                        timeout_s=_STOP_BOUND_S,
                    )
            except PeerError as error:
                LOG.info("controlled shutdown: %s", error)
                continue
            assert isinstance(answer, ControlledShutdownResponse)
            if not answer.error_code and not answer.remaining_partitions:
                return
            LOG.info(
                "controlled shutdown: error %d, %d partitions left",
                answer.error_code,
                len(answer.remaining_partitions),
            )

    # Tasks.

    def _checkpoint(self) -> None:
        self._logs.checkpoint(self._replicas.high_watermarks())

    def _tend_logs(self) -> None:
        self._logs.tick(self._wall_ms(), self._replicas.high_watermarks())

    def _every(self, interval_ms: float, action: Callable[[], None]) -> None:
        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                action()

        self._spawn(repeat())

    def _spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        """A task that failed takes the broker with it: nobody else would do its work."""
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            error = task.exception()
            assert error is not None
            self.fail(error)


_BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def log_config(config: BrokerConfig) -> LogConfig:
    """What a topic's settings say to its log."""
    is_append_time = config.log_message_timestamp_type == "LogAppendTime"
    return LogConfig(
        segment_bytes=config.log_segment_bytes,
        segment_ms=config.log_roll_ms,
        index_interval_bytes=config.log_index_interval_bytes,
        index_bytes_max=config.log_index_size_max_bytes,
        retention_ms=config.log_retention_ms,
        retention_bytes=config.log_retention_bytes,
        message_bytes_max=config.message_max_bytes,
        flush_messages=config.log_flush_interval_messages,
        flush_ms=config.log_flush_interval_ms,
        timestamp_type=batch.LOG_APPEND_TIME if is_append_time else batch.CREATE_TIME,
        timestamp_difference_ms_max=config.log_message_timestamp_difference_max_ms,
        cleanup_policy=config.log_cleanup_policy,
        delete_delay_ms=config.log_segment_delete_delay_ms,
        producer_expiration_ms=config.producer_id_expiration_ms,
    )
