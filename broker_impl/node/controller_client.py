"""This broker's own requests to the controller: topic creation and controlled shutdown."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from broker_impl.api.cluster_view import ClusterView
from broker_impl.config import BrokerConfig
from broker_impl.node.controller import ControllerRuntime
from broker_impl.node.coordinators import internal_topics
from broker_impl.node.peers import PeerError, Peers
from broker_impl.wire.messages.controlled_shutdown_request import ControlledShutdownRequest
from broker_impl.wire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from broker_impl.wire.types import Epoch

LOG = logging.getLogger(__name__)

_CREATE_VERSION, _SHUTDOWN_VERSION = 5, 3
_ANSWER_S = 1.0
"""The time a response may take beyond the timeout that the request names."""


class ControllerClient:
    """Sends this broker's requests to the controller, which is this broker itself or a peer.

    controller: this broker's part in the controller election, which knows the current controller.
    """

    def __init__(
        self,
        config: BrokerConfig,
        peers: Peers,
        view: ClusterView,
        controller: Callable[[], ControllerRuntime],
    ) -> None:
        self._config = config
        self._view = view
        self._peers = peers
        self._controller = controller
        self._wanted: dict[str, None] = {}
        self._creating: dict[str, None] = {}
        self._is_creating = False

    def request_creation(self, topics: Iterable[str]) -> bool:
        """Note topics to create; True if the caller must start ``create`` for them."""
        self._wanted.update((topic, None) for topic in topics if topic not in self._creating)
        return bool(self._wanted) and not self._is_creating

    async def create(self) -> None:
        """Create the noted topics until none is left.

        Topics get the broker's defaults; internal topics get their own settings. A failed creation
        is forgotten: a client that still needs the topic asks again.
        """
        self._is_creating = True
        try:
            while self._wanted:
                self._creating, self._wanted = self._wanted, {}
                await self._create(tuple(self._creating))
        finally:
            self._creating, self._is_creating = {}, False

    async def _create(self, topics: tuple[str, ...]) -> None:
        config = self._config
        brokers = len(self._view.brokers)
        request = CreateTopicsRequest(
            topics=[
                internal_topics.creatable(topic, config, brokers)
                or CreatableTopic(
                    name=topic,
                    num_partitions=config.num_partitions,
                    replication_factor=config.default_replication_factor,
                )
                for topic in topics
            ],
            timeout_ms=config.request_timeout_ms,
        )
        timeout_s = config.request_timeout_ms / 1000 + _ANSWER_S
        try:
            answer = await self._ask(request, _CREATE_VERSION, timeout_s)
        except PeerError as error:
            LOG.info("topics %s could not be created: %s", ", ".join(topics), error)
            return
        for row in answer.topics:
            LOG.info(
                "creation of topic %s, which a client requested: error %s", row.name, row.error_code
            )

    async def hand_over(self, broker_epoch: Epoch, timeout_s: float) -> None:
        """Have the controller move this broker's leaderships, until none or no retry is left."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._move_leaders(broker_epoch, timeout_s)
        except TimeoutError:
            LOG.warning("not all leaders were moved within %g s", timeout_s)

    async def _move_leaders(self, broker_epoch: Epoch, timeout_s: float) -> None:
        config = self._config
        request = ControlledShutdownRequest(broker_id=config.broker_id, broker_epoch=broker_epoch)
        for attempt in range(config.controlled_shutdown_max_retries + 1):
            if attempt:
                await asyncio.sleep(config.controlled_shutdown_retry_backoff_ms / 1000)
            try:
                answer = await self._ask(request, _SHUTDOWN_VERSION, timeout_s)
            except PeerError as error:
                LOG.info("controlled shutdown: %s", error)
                continue
            if not answer.error_code and not answer.remaining_partitions:
                return
            LOG.info(
                "controlled shutdown: error %d, %d partitions left",
                answer.error_code,
                len(answer.remaining_partitions),
            )

    async def _ask(
        self,
        request: CreateTopicsRequest | ControlledShutdownRequest,
        version: int,
        timeout_s: float,
    ) -> Any:
        controller = self._controller()
        if not controller.is_active:
            return await self._peers.request(
                controller.controller_id, request, version, timeout_s=timeout_s
            )
        if isinstance(request, CreateTopicsRequest):
            return await controller.create_topics(request)
        return await controller.controlled_shutdown(request)
