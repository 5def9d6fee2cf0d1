"""Which settings of a topic a broker need not read again."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from broker_impl import config as configuration
from broker_impl.node import zk_paths
from broker_impl.node.topic_settings import TopicSettings, hosts
from broker_impl.wire.types import NO_UUID, TopicPartition


class ZooKeeper:
    """Has the settings of one topic."""

    def __init__(self) -> None:
        self.settings = {"segment.ms": "7"}

    async def get(self, path: str) -> tuple[bytes, None]:
        assert path == zk_paths.topic_config("t")
        return zk_paths.encode(zk_paths.ConfigZnode(config=self.settings)), None


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
