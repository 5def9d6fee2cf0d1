"""The overrides of topics, as stored in ZooKeeper.

The overrides of topics that this broker hosts are kept in memory, because they must be known before
a log is created. Those of other topics are read on request.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from broker_impl.config import BrokerConfig
from broker_impl.errors import ConfigError
from broker_impl.log.partition_log import PartitionLog
from broker_impl.node import zk_paths
from broker_impl.wire.types import NO_UUID, TopicPartition
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode

LOG = logging.getLogger(__name__)


class TopicSettings:
    """Overrides by topic; this broker keeps some of them in memory."""

    def __init__(self, config: BrokerConfig, zk: Callable[[], ZooKeeper]) -> None:
        self._config = config
        self._zk = zk
        self._kept: dict[str, dict[str, str]] = {}
        self._merged: dict[str, BrokerConfig] = {}

    @property
    def base(self) -> BrokerConfig:
        """The broker's own current configuration."""
        return self._config

    def rebase(self, config: BrokerConfig) -> None:
        """Replace the broker's own configuration."""
        self._config = config
        self._merged = {topic: config.for_topic(kept) for topic, kept in self._kept.items()}

    def merged(self, topic: str) -> BrokerConfig:
        """The configuration for this topic, with its overrides if they are kept."""
        return self._merged.get(topic, self._config)

    def overrides(self, topic: str) -> Mapping[str, str]:
        """The overrides of this topic, if they are kept."""
        return self._kept.get(topic, {})

    async def read(self, topic: str) -> dict[str, str]:
        """Read the overrides from ZooKeeper; if any of them is not valid, all are ignored."""
        path = zk_paths.topic_config(topic)
        try:
            data, _ = await self._zk().get(path)
            settings = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
            self._config.for_topic(settings)
        except NoNode:
            return {}
        except (ConfigError, zk_paths.BadZnode) as error:
            LOG.warning("the settings of topic %s are invalid and not applied: %s", topic, error)
            return {}
        return settings

    def are_current(self, topic: str, *, is_hosted: bool) -> bool:
        """Whether what is kept of a topic can be used when the broker is to host a replica."""
        return outlives(is_kept=topic in self._kept, is_hosted=is_hosted)

    def outdated(
        self, topics: Mapping[str, UUID], logs: Mapping[TopicPartition, PartitionLog]
    ) -> list[str]:
        """Those of these topics whose settings a broker with these logs must read."""
        return [
            topic
            for topic, topic_id in topics.items()
            if not self.are_current(topic, is_hosted=hosts(logs, topic, topic_id))
        ]

    async def keep_newest(self, topics: Iterable[str]) -> None:
        """Read the overrides of new topics and keep them.

        No notice follows the creation of a topic: a read from a server that lags would stay.
        """
        await self._zk().sync(zk_paths.TOPIC_CONFIGS)
        for topic in topics:
            await self.keep(topic)

    async def keep(self, topic: str) -> None:
        """Read a topic's overrides and keep them."""
        settings = await self.read(topic)
        self._kept[topic] = settings
        self._merged[topic] = self._config.for_topic(settings)

    async def keep_all(self) -> None:
        """Keep the overrides of every topic that has any, because a log on disk needs its own."""
        for topic in await self._zk().children(zk_paths.TOPIC_CONFIGS):
            await self.keep(topic)

    def forget(self, topic: str) -> None:
        """Drop the overrides of a deleted topic; a new topic of the same name may have others."""
        self._kept.pop(topic, None)
        self._merged.pop(topic, None)


def outlives(*, is_kept: bool, is_hosted: bool) -> bool:
    """Do kept settings apply to another replica of the topic?

    Those of a topic that is not hosted here may belong to a deleted one of the same name.
    """
    return is_kept and is_hosted


def hosts(
    logs: Mapping[TopicPartition, PartitionLog], topic: str, topic_id: UUID = NO_UUID
) -> bool:
    """Does a broker with these logs host the topic with this id? NO_UUID: the id is not known.

    A log of a deleted topic of the same name may be left where the broker was away when the topic
    was deleted (KIP-516).
    """
    if topic_id == NO_UUID:
        return any(tp.topic == topic for tp in logs)
    return any(tp.topic == topic and log.topic_id == topic_id for tp, log in logs.items())
