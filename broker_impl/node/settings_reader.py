"""Reads the settings of one broker, its topics and clients from ZooKeeper; applies each change."""

import logging
from collections.abc import Callable

from broker_impl.api.altering import ALL_BROKERS
from broker_impl.config import BrokerConfig
from broker_impl.errors import ConfigError
from broker_impl.node import config_changes, zk_paths
from broker_impl.node.quotas import QuotasRuntime
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.zookeeper.client import ZooKeeper

LOG = logging.getLogger(__name__)


class SettingsReader:
    """Keeps ``TopicSettings`` up to date; ``config_changes.follow`` calls its methods."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: TopicSettings,
        quotas: QuotasRuntime,
        zk: Callable[[], ZooKeeper],
        apply: Callable[[str | None], None],
    ) -> None:
        """``apply`` is called after a change, with the topic, or None if all may have changed."""
        self._config = config
        self._settings = settings
        self._quotas = quotas
        self._zk = zk
        self._apply = apply

    async def read_all(self) -> None:
        """Read the settings of all topics, of all brokers and of this one, and all quotas."""
        await self._read_own()
        await self._quotas.read()
        await self._settings.keep_all()
        self._apply(None)

    async def changed(self, entity: str) -> None:
        """Read the settings of ``topics/T`` or ``brokers/N``, or the quotas of a client, again."""
        kind, _, name = entity.partition("/")
        if kind == "topics":
            await self._settings.keep(name)
            self._apply(name)
        elif kind == "brokers":
            await self._read_own()
            self._apply(None)
        else:
            await self._quotas.changed(entity)

    async def _read_own(self) -> None:
        zk = self._zk()
        try:
            common = await config_changes.read(zk, f"brokers/{ALL_BROKERS}")
            own = await config_changes.read(zk, f"brokers/{self._config.broker_id}")
            self._settings.rebase(self._config.while_running(common, own))
        except (ConfigError, zk_paths.BadZnode) as error:
            LOG.warning(
                "the changed settings of this broker are invalid and not applied: %s", error
            )
