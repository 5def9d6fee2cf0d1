"""Build a configuration from Kafka's names and text, and check it."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from broker_impl.config.addresses import check_ensemble, parse_address
from broker_impl.config.broker_config import BrokerConfig
from broker_impl.config.listener_checks import check_listeners
from broker_impl.config.logins import Login, parse_login, zookeeper_login
from broker_impl.config.names import OWN_PREFIX, PEER_PREFIX, listener_setting, unusable_setting
from broker_impl.config.security import ZOOKEEPER_JAAS, SecuritySettings
from broker_impl.config.table import SETTINGS
from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import inactive
from broker_impl.properties import by_one_name


def parse(settings: Mapping[str, str]) -> BrokerConfig:
    """Build a configuration from Kafka's names and text; ConfigError for the first invalid setting.

    Unknown names are ignored, as in Kafka; :func:`names.notes` reports them.
    """
    settings = by_one_name(settings)
    values: dict[str, Any] = {}
    peers: dict[int, tuple[str, int]] = {}
    others: dict[str, str] = {}
    of_listeners: dict[str, dict[str, str]] = {}
    logins: dict[tuple[str, str], Login] = {}
    for name, text in settings.items():
        if name.startswith(PEER_PREFIX):
            peers[_peer_id(name)] = parse_address(text, name)
        elif (setting := SETTINGS.get(name)) is not None:
            values[setting.field] = setting.parse(text)
        elif (own := listener_setting(name)) is not None:
            if own.mechanism is not None:
                logins[own.listener, own.mechanism] = parse_login(name, own.mechanism, text)
            else:
                SETTINGS[own.name].parse(text, name)
                of_listeners.setdefault(own.listener, {})[own.name] = text
        elif (other := inactive(name)) is not None:
            other.check(name, text)
            others[name] = text
        elif name.startswith(OWN_PREFIX):
            raise unusable_setting(name)
    given = frozenset(settings) & SETTINGS.keys()
    config = BrokerConfig(
        **values,
        peer_overrides=peers,
        given=given,
        inactive=others,
        of_listeners=of_listeners,
        logins=logins,
        zookeeper_login=zookeeper_login(values.get("zookeeper_jaas", "")),
    )
    _check(config)
    return config


def check_active(name: str, text: str) -> None:
    """Raise ConfigError for a setting that the broker would reject, ignore, or not act on."""
    for one_name, value in by_one_name({name: text}).items():
        setting = SETTINGS.get(one_name)
        if setting is None:
            raise unusable_setting(one_name)
        if setting.field in SecuritySettings.__dataclass_fields__:
            raise ConfigError(f"{one_name}: the listeners of a test's brokers are not protected")
        setting.parse(value)


def _peer_id(name: str) -> int:
    number = name.removeprefix(PEER_PREFIX)
    if not number.isdecimal():
        raise ConfigError(f"{name}: the name must end in a broker id")
    return int(number)


def _check(config: BrokerConfig) -> None:
    """Check the constraints that involve several settings."""
    check_listeners(config)
    if config.inactive.get("process.roles"):
        raise ConfigError("process.roles: this broker has no KRaft mode; set zookeeper.connect")
    if not config.zookeeper_connect:
        raise ConfigError("zookeeper.connect: must be set")
    check_ensemble(config.zookeeper_connect)
    if config.zookeeper_set_acl and config.zookeeper_login is None:
        raise ConfigError(f"zookeeper.set.acl=true: needs a login at ZooKeeper, {ZOOKEEPER_JAAS}")
    if config.metrics_listener:
        parse_address(config.metrics_listener, "faultline.metrics.listener")
    if config.broker_id < 0:
        raise ConfigError("broker.id: must be set")
    paths = config.log_directories()
    if not paths:
        raise ConfigError("log.dirs: must be set")
    if len(set(map(PurePath, paths))) < len(paths):
        raise ConfigError(f"log.dirs={config.log_dirs}: a directory is given twice")
