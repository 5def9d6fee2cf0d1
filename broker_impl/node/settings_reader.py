"""Reads settings of one broker, its topics, users and clients from ZooKeeper; applies changes."""

import logging
from collections.abc import Callable

from broker_impl.api.altering import ALL_BROKERS
from broker_impl.api.quotas.entities import USERS
from broker_impl.config import BrokerConfig
from broker_impl.errors import ConfigError
from broker_impl.node import change_notices, config_changes, zk_paths
from broker_impl.node.quotas import QuotasRuntime
from broker_impl.node.security import Security
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.zookeeper.client import ZooKeeper

LOG = logging.getLogger(__name__)


class SettingsReader:
    """Keeps settings, quotas and users up to date, as their notifications in ZooKeeper demand."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: TopicSettings,
        quotas: QuotasRuntime,
        security: Security,
        zk: Callable[[], ZooKeeper],
        apply: Callable[[str | None], None],
    ) -> None:
        """``apply`` is called after a change, with the topic, or None if all may have changed."""
        self._config = config
        self._settings = settings
        self._quotas = quotas
        self._security = security
        self._zk = zk
        self._apply = apply

    async def follow(self) -> None:
        """Read all settings, and then each change, until the session ends."""
        await change_notices.follow(
            self._zk(),
            zk_paths.CONFIG_CHANGES,
            config_changes.entity,
            self.read_all,
            self.changed,
        )

    async def read_all(self) -> None:
        """Read the settings of all topics and brokers, all quotas, and the users."""
        await self._security.read()
        await self._read_own()
        await self._quotas.read()
        await self._settings.keep_all()
        self._apply(None)

    async def changed(self, entity: str) -> None:
        """Read the settings of a topic, a broker, a user or a client again: ``topics/T``, …"""
        kind, _, name = entity.partition("/")
        if kind == "topics":
            await self._settings.keep(name)
            self._apply(name)
        elif kind == "brokers":
            await self._read_own()
            self._apply(None)
        else:
            await self._quotas.changed(entity)
            if kind == USERS and "/" not in name:
                await self._security.user_changed(name)

    async def _read_own(self) -> None:
        zk = self._zk()
        try:
            common = await config_changes.read(zk, f"brokers/{ALL_BROKERS}")
            own = await config_changes.read(zk, f"brokers/{self._config.broker_id}")
            config = self._config.while_running(common, own)
            self._security.settings_changed(config)
            self._settings.rebase(config)
        except (ConfigError, zk_paths.BadZnode) as error:
            LOG.warning(
                "the changed settings of this broker are invalid and not applied: %s", error
            )
