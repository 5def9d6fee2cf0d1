"""What of a broker's configuration concerns the controller."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from broker_impl.config import TOPIC_SETTINGS, BrokerConfig
from broker_impl.wire.messages.create_topics_response import CreatableTopicConfigs

_FROM_TOPIC, _FROM_FILE, _FROM_DEFAULT = 1, 4, 5


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """What of a broker's configuration concerns the controller."""

    inter_broker_listener: str
    socket_timeout_s: float
    delete_topics: bool
    partitions_default: int
    replication_factor_default: int
    rebalance_s: float | None
    """How often preferred leaders are restored; None: never."""
    topic_rows: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]
    """The settings of a topic with these overrides, as CreateTopics reports them; ConfigError."""
    unclean: Callable[[Mapping[str, str]], bool]
    """Whether a topic with these overrides may have a leader from outside its ISR; ConfigError."""

    @classmethod
    def of(cls, config: BrokerConfig) -> "ControllerConfig":
        """The controller's part of a broker's configuration."""
        interval = config.leader_imbalance_check_interval_seconds
        return cls(
            inter_broker_listener=config.inter_broker_listener(),
            socket_timeout_s=config.controller_socket_timeout_ms / 1000,
            delete_topics=config.delete_topic_enable,
            partitions_default=config.num_partitions,
            replication_factor_default=config.default_replication_factor,
            rebalance_s=interval if config.auto_leader_rebalance_enable else None,
            topic_rows=partial(_topic_rows, config),
            unclean=lambda overrides: config.for_topic(overrides).unclean_leader_election_enable,
        )


def _topic_rows(config: BrokerConfig, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    merged = config.for_topic(overrides)
    rows = []
    for name, setting in TOPIC_SETTINGS.items():
        source = _FROM_FILE if setting.name in config.given else _FROM_DEFAULT
        rows.append(
            CreatableTopicConfigs(
                name=name,
                value=setting.format(getattr(merged, setting.field)),
                config_source=_FROM_TOPIC if name in overrides else source,
                is_sensitive=setting.is_secret,
            )
        )
    return rows
