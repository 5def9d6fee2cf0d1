"""Kafka's defaults for settings without effect."""

from broker_impl.kafka_defaults import DEFAULTS
from broker_impl.kafka_settings import INACTIVE

KRAFT = {
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "controller.listener.names",
    "initial.broker.registration.timeout.ms",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "sasl.mechanism.controller.protocol",
}
"""Settings that are internal in Kafka 2.8, with those of the quorum."""


def test_each_setting_without_effect_has_a_default_or_is_internal() -> None:
    """Kafka describes all settings but internal ones."""
    internal = {name for name in INACTIVE if name in KRAFT or name.startswith("controller.quorum.")}
    internal -= set(DEFAULTS)
    assert set(DEFAULTS) | internal == set(INACTIVE)
    assert not KRAFT & set(DEFAULTS)


def test_defaults_are_valid() -> None:
    """Each default is a value that Kafka accepts."""
    for name, text in DEFAULTS.items():
        if text is not None:
            INACTIVE[name].check(name, text)
