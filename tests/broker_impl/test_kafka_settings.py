import re
from pathlib import Path

import pytest

from broker_impl.config import SETTINGS, TOPIC_SETTINGS
from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import INACTIVE, Kind, inactive, parse_value
from broker_impl.properties import OTHER_NAMES


def test_a_setting_is_active_or_not() -> None:
    """Active and inactive settings do not overlap."""
    assert not INACTIVE.keys() & {*SETTINGS, *OTHER_NAMES, *TOPIC_SETTINGS}


def test_the_list_for_users_is_complete(repository: Path) -> None:
    """docs/broker-settings.md names every setting without effect, and no other."""
    text = (repository / "docs" / "broker-settings.md").read_text()
    listed = re.findall(r"^- `([\w.]+)`$", text, re.M)
    assert sorted(listed) == sorted(INACTIVE)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.INT, " -2147483648 ", -(2**31)),
        (Kind.LONG, "+9223372036854775807", 2**63 - 1),
        (Kind.SHORT, "007", 7),
        (Kind.DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (Kind.BOOLEAN, "TRUE", True),
        (Kind.LIST, "a, b,", ("a", "b")),
        (Kind.PASSWORD, " x ", "x"),
    ],
)
def test_values_are_read_as_java_reads_them(kind: Kind, text: str, value: object) -> None:
    """Values are read as in Java: surrounding spaces are ignored, and all extremes are in range."""
    assert parse_value(kind, "name", text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.INT, "2147483648"),
        (Kind.INT, "0x10"),
        (Kind.INT, "1 000"),
        (Kind.SHORT, "-32769"),
        (Kind.LONG, "1L"),
        (Kind.DOUBLE, ""),
        (Kind.BOOLEAN, "yes"),
    ],
)
def test_a_bad_value_is_refused(kind: Kind, text: str) -> None:
    """The error begins with the name and the value."""
    with pytest.raises(ConfigError, match=f"^name={text}: must be "):
        parse_value(kind, "name", text)


def test_a_listener_has_settings_of_its_own() -> None:
    """A setting with a listener's prefix is Kafka's or a plug-in's, which may be a secret."""
    assert inactive("listener.name.client.ssl.provider") == INACTIVE["ssl.provider"]
    plug_in = inactive("listener.name.client.plain.sasl.jaas.config")
    assert plug_in is not None
    assert plug_in.kind is Kind.PASSWORD
    assert inactive("listener.name.client") is None
