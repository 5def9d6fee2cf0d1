"""Which settings of a topic a broker need not read again."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker_impl import config as configuration
from broker_impl.node import zk_paths
from broker_impl.node.topic_settings import TopicSettings, hosts
from broker_impl.wire.types import NO_UUID, TopicPartition
from broker_impl.zookeeper.errors import NoNode


class ZooKeeper:
    """Has the settings of one topic; without a sync, a read does not find them if it lags."""

    def __init__(self, *, lags: bool = False) -> None:
        self.settings = {"segment.ms": "7"}
        self.lags = lags
        self.syncs = 0

    async def get(self, path: str) -> tuple[bytes, None]:
        if self.lags or path != zk_paths.topic_config("t"):
            raise NoNode(path)
        return zk_paths.encode(zk_paths.ConfigZnode(config=self.settings)), None

    async def sync(self, path: str) -> None:
        self.lags = False
        self.syncs += 1


@pytest.mark.parametrize("is_hosted", [False, True])
async def test_settings_of_a_topic_that_is_not_hosted_are_read_again(is_hosted: bool) -> None:
    """They may be those of a deleted topic; what is forgotten is read again, too."""
    zk: Any = ZooKeeper()
    config = configuration.parse({"broker.id": "1", "zookeeper.connect": "h:1"})
    settings = TopicSettings(config, lambda: zk)
    assert not settings.are_current("t", is_hosted=is_hosted)
    await settings.keep("t")
    assert settings.are_current("t", is_hosted=is_hosted) is is_hosted
    assert (settings.overrides("t"), settings.merged("t").log_roll_ms) == ({"segment.ms": "7"}, 7)
    settings.forget("t")
    assert not settings.are_current("t", is_hosted=is_hosted)
    assert settings.overrides("t") == {}


def test_the_log_of_a_deleted_topic_does_not_count() -> None:
    """Nor one without an id; a request that names no id may be about any of them."""
    now, former = UUID(int=2), UUID(int=1)
    for own, is_hosted in ((now, True), (former, False), (NO_UUID, False)):
        logs: Any = {TopicPartition("t", 0): SimpleNamespace(topic_id=own)}
        assert hosts(logs, "t", now) is is_hosted
        assert hosts(logs, "t")
        assert not hosts(logs, "u", now)
        assert not hosts(logs, "u")


async def test_settings_of_new_topics_are_read_after_one_sync() -> None:
    """The server may lag behind the creation of a topic, and no notice would correct the read."""
    zk: Any = ZooKeeper(lags=True)
    config = configuration.parse({"broker.id": "1", "zookeeper.connect": "h:1"})
    settings = TopicSettings(config, lambda: zk)
    await settings.keep_newest(["u", "t"])
    assert (settings.overrides("t"), settings.overrides("u")) == ({"segment.ms": "7"}, {})
    assert zk.syncs == 1


async def test_which_settings_are_outdated() -> None:
    """Those that are not kept, and those of a topic that is not hosted here."""
    zk: Any = ZooKeeper()
    config = configuration.parse({"broker.id": "1", "zookeeper.connect": "h:1"})
    settings = TopicSettings(config, lambda: zk)
    ids = {"t": UUID(int=1), "u": UUID(int=2), "v": UUID(int=3)}
    await settings.keep("t")
    await settings.keep("u")
    logs: Any = {
        TopicPartition(name, 0): SimpleNamespace(topic_id=ids[name]) for name in ("t", "v")
    }
    assert settings.outdated(ids, logs) == ["u", "v"]
