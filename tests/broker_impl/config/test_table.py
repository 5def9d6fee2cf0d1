import dataclasses

import pytest

from broker_impl import config
from broker_impl.config.table import AllSettings
from broker_impl.kafka_settings import Kind


@pytest.mark.parametrize("setting", config.SETTINGS.values(), ids=lambda s: s.name)
def test_every_default_survives_being_written_and_read(setting: config.Setting) -> None:
    """Every default is formatted, for DescribeConfigs, in a form that a properties file accepts."""
    assert setting.parse(setting.format(setting.default)) == setting.default


def test_the_table_has_one_row_for_each_field() -> None:
    """No two settings share a name, and a topic's name belongs to one setting."""
    fields = dataclasses.fields(AllSettings)
    assert [setting.field for setting in config.SETTINGS.values()] == [each.name for each in fields]
    overridden = [setting for setting in config.SETTINGS.values() if setting.topic is not None]
    assert list(config.TOPIC_SETTINGS.values()) == overridden


def test_each_part_of_the_table_contributes_its_settings() -> None:
    """The table begins with the broker's identity and ends with the controller's settings."""
    names = list(config.SETTINGS)
    assert names[0] == "broker.id"
    assert names[-1] == "leader.imbalance.check.interval.seconds"
    assert config.SETTINGS["log.roll.ms"].kind is Kind.LONG
    assert config.SETTINGS["listeners"].kind is Kind.LIST


def test_which_settings_are_secret() -> None:
    """A setting is secret for its kind or its name; its value is not shown with the others."""
    secret = {name for name, setting in config.SETTINGS.items() if setting.is_secret}
    assert secret == {
        "faultline.zookeeper.sasl.jaas.config",
        "ssl.key.password",
        "ssl.truststore.certificates",
    }
    shown = {item.metadata["name"] for item in dataclasses.fields(AllSettings) if item.repr}
    assert shown == config.SETTINGS.keys() - secret
