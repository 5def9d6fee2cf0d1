"""The broker's configuration: the typed settings, and from which source each value came.

A topic's settings are the broker's with some fields replaced (``for_topic``), as in Kafka.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from broker_impl.config.addresses import Endpoint, parse_endpoint
from broker_impl.config.logins import NO_LOGIN, Login
from broker_impl.config.names import (
    DYNAMIC_OF_A_LISTENER,
    hint,
    is_known,
    listener_setting,
    unusable_setting,
)
from broker_impl.config.security import SASL_PLAINTEXT, SASL_SSL, SSL
from broker_impl.config.setting import Setting
from broker_impl.config.table import SETTINGS, TOPIC_SETTINGS, AllSettings
from broker_impl.config.topic_only import TOPIC_ONLY_SETTINGS
from broker_impl.errors import ConfigError, UnknownSettingError
from broker_impl.kafka_settings import CHANGEABLE, OF_ONE_BROKER


class Source(IntEnum):
    """The source of a setting's value, with the numbers of DescribeConfigs and CreateTopics."""

    TOPIC = 1
    BROKER = 2
    """Set dynamically for one broker."""
    ALL_BROKERS = 3
    """Set dynamically for all brokers."""
    FILE = 4
    DEFAULT = 5


class Sourced(NamedTuple):
    """A value, with the name under which it was set."""

    name: str
    value: Any
    source: Source


@dataclass(frozen=True, kw_only=True)
class BrokerConfig(AllSettings):
    """The settings of one broker. Times are milliseconds, sizes bytes, -1 no limit."""

    peer_overrides: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """``faultline.peer.<id>=host:port``: the address of a peer, in place of its advertised one."""
    given: frozenset[str] = field(default=frozenset())
    """The names that were set explicitly (DescribeConfigs separates these from defaults)."""

    inactive: Mapping[str, str] = field(default_factory=dict)
    """Kafka settings that were given and on which this broker does not act, as text."""

    of_listeners: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Settings of single listeners (``listener.name.X.…``), by listener and name, as text."""
    logins: Mapping[tuple[str, str], Login] = field(default_factory=dict, repr=False)
    """The users and passwords of a listener and a mechanism."""
    zookeeper_login: Login | None = field(default=None, repr=False)
    """The user as which the broker authenticates to ZooKeeper; None: it does not."""

    static: "BrokerConfig | None" = field(default=None)
    """The configuration given at the start, if it has changed since."""
    dynamic: Mapping[str, str] = field(default_factory=dict)
    """The dynamic settings of this broker, by broker-level names."""
    dynamic_default: Mapping[str, str] = field(default_factory=dict)
    """The dynamic settings of all brokers."""

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The listeners, parsed."""
        return tuple(parse_endpoint(text) for text in self.listeners)

    def advertised(self) -> tuple[Endpoint, ...]:
        """The advertised listeners, if they were given."""
        return tuple(parse_endpoint(text) for text in self.advertised_listeners)

    def log_directories(self) -> tuple[str, ...]:
        """The data directories, in the order in which they were given."""
        return tuple(path.strip() for path in self.log_dirs.split(",") if path.strip())

    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves."""
        if self.inter_broker_listener_name:
            return self.inter_broker_listener_name.upper()
        if "security.inter.broker.protocol" in self.given:
            return self.security_inter_broker_protocol
        return self.endpoints()[0].name

    def security_protocols(self) -> dict[str, str]:
        """Listener name to security protocol."""
        pairs = (item.partition(":") for item in self.listener_security_protocol_map)
        return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}

    def has_tls(self, listener: str) -> bool:
        """Whether connections to this listener are encrypted."""
        return self.security_protocols()[listener] in (SSL, SASL_SSL)

    def has_sasl(self, listener: str) -> bool:
        """Whether clients authenticate by SASL on this listener."""
        return self.security_protocols()[listener] in (SASL_PLAINTEXT, SASL_SSL)

    def for_listener(self, listener: str) -> "BrokerConfig":
        """Return this configuration with the settings of one listener."""
        own = self.of_listeners.get(listener, {})
        return dataclasses.replace(
            self, **{SETTINGS[name].field: SETTINGS[name].parse(own[name]) for name in own}
        )

    def login(self, listener: str, mechanism: str) -> Login:
        """The users and passwords of a listener and a mechanism."""
        return self.logins.get((listener, mechanism), NO_LOGIN)

    def for_topic(self, overrides: Mapping[str, str]) -> "BrokerConfig":
        """Return this configuration with a topic's overrides.

        overrides: topic-level names (``retention.ms``) to text. A ConfigError names the invalid
        setting.
        """
        changed = {}
        for name, text in overrides.items():
            setting = TOPIC_SETTINGS.get(name)
            if setting is None and name in TOPIC_ONLY_SETTINGS:
                TOPIC_ONLY_SETTINGS[name].parse(text)
                continue
            if setting is None:
                raise UnknownSettingError(
                    f"unknown topic setting {name}{hint(name, TOPIC_SETTINGS)}"
                )
            changed[setting.field] = setting.parse(text, name)
        return dataclasses.replace(self, **changed)

    def while_running(self, default: Mapping[str, str], own: Mapping[str, str]) -> "BrokerConfig":
        """Return this configuration, which was given at the start, with dynamic settings applied.

        default: for all brokers; own: for this one. Dynamic are those settings that are read at
        each use, and some on which this broker does not act. Unknown names are ignored, as in
        Kafka. A ConfigError names the invalid setting.
        """
        changed: dict[str, Any] = {}
        of_listeners = {listener: dict(named) for listener, named in self.of_listeners.items()}
        for name, text in (dict(default) | dict(own)).items():
            part = listener_setting(name)
            if part is not None and part.name in DYNAMIC_OF_A_LISTENER:
                if name in default:
                    raise ConfigError(f"{name} can be changed for single brokers only")
                if part.listener not in {endpoint.name for endpoint in self.endpoints()}:
                    raise ConfigError(f"{name}: there is no listener {part.listener}")
                SETTINGS[part.name].parse(text, name)
                of_listeners.setdefault(part.listener, {})[part.name] = text
                continue
            setting = SETTINGS.get(name)
            if setting is None and name in CHANGEABLE:
                if name in OF_ONE_BROKER and name in default:
                    raise ConfigError(f"{name} can be changed for single brokers only")
                CHANGEABLE[name].check(name, text)
                continue
            if not is_known(name):
                continue
            if setting is None and part is None:
                raise unusable_setting(name)
            if setting is None or not setting.is_dynamic:
                raise ConfigError(f"{name} cannot be changed while a broker runs")
            changed[setting.field] = setting.parse(text)
        return dataclasses.replace(
            self,
            **changed,
            of_listeners=of_listeners,
            static=self,
            dynamic=dict(own),
            dynamic_default=dict(default),
        )

    def sourced(self, setting: Setting) -> list[Sourced]:
        """All values of a broker's setting with their sources; the effective one is first."""
        static = self.static or self
        name = setting.name
        values = []
        if name in self.dynamic:
            values.append(Sourced(name, setting.parse(self.dynamic[name]), Source.BROKER))
        if name in self.dynamic_default:
            text = self.dynamic_default[name]
            values.append(Sourced(name, setting.parse(text), Source.ALL_BROKERS))
        if name in static.given:
            values.append(Sourced(name, getattr(static, setting.field), Source.FILE))
        return [*values, Sourced(name, setting.default, Source.DEFAULT)]

    def topic_settings(
        self, overrides: Mapping[str, str]
    ) -> Iterator[tuple[str, Setting, list[Sourced]]]:
        """Each setting of a topic by name, with all its values; the effective one is first.

        overrides: as in :meth:`for_topic`.
        """
        merged = self.for_topic(overrides)
        for name, setting in TOPIC_SETTINGS.items():
            values = self.sourced(setting)
            if name in overrides:
                values.insert(0, Sourced(name, getattr(merged, setting.field), Source.TOPIC))
            yield name, setting, values
        for name, setting in TOPIC_ONLY_SETTINGS.items():
            values = [Sourced(name, setting.default, Source.DEFAULT)]
            if name in overrides:
                values.insert(0, Sourced(name, setting.parse(overrides[name]), Source.TOPIC))
            yield name, setting, values
