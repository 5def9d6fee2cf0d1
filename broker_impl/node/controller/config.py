"""The part of a broker's configuration that the controller uses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from broker_impl.config import BrokerConfig
from broker_impl.wire.messages.create_topics_response import CreatableTopicConfigs


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The part of a broker's configuration that the controller uses."""

    inter_broker_listener: str
    socket_timeout_s: float
    delete_topics: bool
    partitions_default: int
    replication_factor_default: int
    rebalance_s: float | None
    """The interval at which preferred leaders are restored; None: never."""
    topic_rows: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]
    """The settings of a topic with these overrides, as in CreateTopics; raises ConfigError."""
    unclean: Callable[[Mapping[str, str]], bool]
    """Whether a topic with these overrides allows unclean leader election; raises ConfigError."""

    @classmethod
    def of(
        cls, config: BrokerConfig, current: Callable[[], BrokerConfig] | None = None
    ) -> "ControllerConfig":
        """Return the controller's part of a broker's configuration.

        current: returns the configuration that topics inherit, if it can change at run time.
        """
        now = current or (lambda: config)
        interval = config.leader_imbalance_check_interval_seconds
        return cls(
            inter_broker_listener=config.inter_broker_listener(),
            socket_timeout_s=config.controller_socket_timeout_ms / 1000,
            delete_topics=config.delete_topic_enable,
            partitions_default=config.num_partitions,
            replication_factor_default=config.default_replication_factor,
            rebalance_s=interval if config.auto_leader_rebalance_enable else None,
            topic_rows=partial(_topic_rows, now),
            unclean=lambda overrides: now().for_topic(overrides).unclean_leader_election_enable,
        )


def _topic_rows(
    config: Callable[[], BrokerConfig], overrides: Mapping[str, str]
) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=name,
            value=setting.format(values[0].value),
            config_source=values[0].source,
            is_sensitive=setting.is_secret,
        )
        for name, setting, values in config().topic_settings(overrides)
    ]
