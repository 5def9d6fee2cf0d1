"""The quotas that one broker enforces, of clients and of replication, and changes of the former."""

from collections.abc import Callable
from functools import partial
from typing import Final

from broker_impl.api.quotas import entities
from broker_impl.api.quotas.entities import Entity
from broker_impl.api.quotas.limits import ClientQuotas, Kind
from broker_impl.api.quotas.replication import FOLLOWERS, LEADERS, ReplicationQuota
from broker_impl.config import BrokerConfig
from broker_impl.node import config_changes, quota_store, zk_answers
from broker_impl.node.topic_settings import TopicSettings
from broker_impl.zookeeper.client import ZooKeeper

_UNLIMITED: Final = 2**63 - 1


class QuotasRuntime:
    """The quotas that one broker enforces, as last read from ZooKeeper."""

    def __init__(
        self,
        config: BrokerConfig,
        settings: TopicSettings,
        zk: Callable[[], ZooKeeper],
        wall_ms: Callable[[], int],
    ) -> None:
        self.limits = limits(config)
        self.leading = _replication(
            LEADERS, settings, lambda: settings.base.leader_replication_throttled_rate
        )
        self.following = _replication(
            FOLLOWERS, settings, lambda: settings.base.follower_replication_throttled_rate
        )
        self._timeout_s = config.request_timeout_ms / 1000
        self._zk = zk
        self._wall_ms = wall_ms

    async def read(self) -> None:
        """Read all quotas from ZooKeeper, and apply them."""
        self.limits.replace(await quota_store.read_all(self._zk()))

    async def changed(self, path: str) -> None:
        """Read and apply the quotas of the entity with this path below ``/config``, if any."""
        entity = entities.of_path(path)
        if entity is not None:
            self.limits.set(entity, await quota_store.read(self._zk(), entity))

    async def describe(self) -> quota_store.Quotas:
        """Read the quotas of all clients; ApiError if ZooKeeper cannot be reached."""
        return await zk_answers.read(lambda: quota_store.read_all(self._zk()), self._timeout_s)

    async def alter(self, entity: Entity, change: config_changes.Alter) -> None:
        """Write the settings that ``change`` returns, and apply the entity's quotas here."""
        now_ms = self._wall_ms()
        write = partial(quota_store.alter, entity=entity, change=change, now_ms=now_ms)
        await zk_answers.write(self._zk, write, self._timeout_s)
        await zk_answers.read(partial(self.changed, entity.path), self._timeout_s)


def _replication(
    listed: str, settings: TopicSettings, limit: Callable[[], int]
) -> ReplicationQuota:
    config = settings.base
    return ReplicationQuota(
        listed,
        config.broker_id,
        limit=limit,
        overrides=settings.overrides,
        samples=config.replication_quota_window_num,
        window_ms=config.replication_quota_window_size_seconds * 1000,
    )


def limits(config: BrokerConfig) -> ClientQuotas:
    """The quotas of clients that follow from the broker's settings alone."""
    defaults = {
        Kind.PRODUCED: config.quota_producer_default,
        Kind.CONSUMED: config.quota_consumer_default,
    }
    return ClientQuotas(
        config.quota_window_num,
        config.quota_window_size_seconds * 1000,
        {kind: value for kind, value in defaults.items() if value != _UNLIMITED},
    )
