"""The overrides of topics, as ZooKeeper holds them.

What a broker hosts must be settled before its log is made, so those are kept; of other topics the
settings are read whenever somebody asks.
"""

import logging
from collections.abc import Callable

from broker_impl.config import BrokerConfig
from broker_impl.errors import ConfigError
from broker_impl.node import zk_paths
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import NoNode

LOG = logging.getLogger(__name__)


class TopicSettings:
    """Overrides by topic, with what of them this broker keeps."""

    def __init__(self, config: BrokerConfig, zk: Callable[[], ZooKeeper]) -> None:
        self._config = config
        self._zk = zk
        self._kept: dict[str, dict[str, str]] = {}
        self._merged: dict[str, BrokerConfig] = {}

    @property
    def base(self) -> BrokerConfig:
        """The broker's own configuration, as it is now."""
        return self._config

    def rebase(self, config: BrokerConfig) -> None:
        """The broker's own configuration has changed."""
        self._config = config
        self._merged = {topic: config.for_topic(kept) for topic, kept in self._kept.items()}

    def __contains__(self, topic: str) -> bool:
        return topic in self._kept

    def merged(self, topic: str) -> BrokerConfig:
        """The configuration as this topic sees it, as far as its overrides are kept."""
        return self._merged.get(topic, self._config)

    async def read(self, topic: str) -> dict[str, str]:
        """What ZooKeeper says now; settings that cannot be obeyed are left out as a whole."""
        path = zk_paths.topic_config(topic)
        try:
            data, _ = await self._zk().get(path)
            settings = zk_paths.decode(path, data, zk_paths.ConfigZnode).config
            self._config.for_topic(settings)
        except NoNode:
            return {}
        except (ConfigError, zk_paths.BadZnode) as error:
            LOG.warning("settings of topic %s are not obeyed: %s", topic, error)
            return {}
        return settings

    async def keep(self, topic: str) -> None:
        """Read, and remember."""
        settings = await self.read(topic)
        self._kept[topic] = settings
        self._merged[topic] = self._config.for_topic(settings)

    async def keep_all(self) -> None:
        """Those of every topic that has any: a log found on the disk must have its own."""
        for topic in await self._zk().children(zk_paths.TOPIC_CONFIGS):
            await self.keep(topic)

    def forget(self, topic: str) -> None:
        """The topic is gone; one of the same name may have others."""
        self._kept.pop(topic, None)
        self._merged.pop(topic, None)
