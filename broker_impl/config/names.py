"""Names of settings: which ones this broker knows, and what an unknown name probably means."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker_impl.config.security import MECHANISMS, SaslSettings, TlsSettings
from broker_impl.config.table import SETTINGS, TOPIC_SETTINGS
from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import INACTIVE, LISTENER_PREFIX, inactive
from broker_impl.properties import OTHER_NAMES

PEER_PREFIX = "faultline.peer."
OWN_PREFIX = "faultline."
_SIMILAR = 0.7
"""The similarity (0 to 1) from which a known name is suggested for an unknown one."""
_JAAS: Final = ".sasl.jaas.config"
OF_A_LISTENER: Final = frozenset(
    each.metadata["name"]
    for kind in (TlsSettings, SaslSettings)
    for each in dataclasses.fields(kind)
) - {
    "security.inter.broker.protocol",
    "sasl.mechanism.inter.broker.protocol",
    "connection.failed.authentication.delay.ms",
}
"""Settings that one listener can override."""

DYNAMIC_OF_A_LISTENER: Final = frozenset({"ssl.keystore.type", "ssl.keystore.location"})
"""Settings of one listener that can change while the broker runs, for this broker (KIP-226)."""


class ListenerSetting(NamedTuple):
    """A setting ``listener.name.LISTENER.NAME`` on which this broker acts."""

    listener: str
    name: str
    mechanism: str | None
    """The mechanism whose users ``sasl.jaas.config`` names; None for every other setting."""


def listener_setting(name: str) -> ListenerSetting | None:
    """Return the parts of a listener's setting, or None if this broker does not act on it."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, inner = name.removeprefix(LISTENER_PREFIX).partition(".")
    mechanism = inner.removesuffix(_JAAS).upper()
    if inner.endswith(_JAAS) and mechanism in MECHANISMS:
        return ListenerSetting(listener.upper(), _JAAS[1:], mechanism)
    if inner in OF_A_LISTENER:
        return ListenerSetting(listener.upper(), inner, None)
    return None


def unusable_setting(name: str) -> ConfigError:
    """Return the error for a name that is not a setting on which this broker acts."""
    if inactive(name) is not None:
        return ConfigError(f"this broker does not act on {name}")
    return ConfigError(f"unknown setting {name}{hint(name, _known_names())}")


def notes(settings: Mapping[str, str]) -> list[str]:
    """Return notes for the user about settings without effect.

    There is one line for each unknown name, and one line for all Kafka settings on which this
    broker does not act.
    """
    unknown = [name for name in settings if not is_known(name)]
    idle = sorted(
        name for name in settings if inactive(name) is not None and listener_setting(name) is None
    )
    lines = [f"unknown setting {name} is ignored{hint(name, _known_names())}" for name in unknown]
    if idle:
        lines.append(
            "the broker does not act on these Kafka settings (docs/broker-settings.md): "
            f"{', '.join(idle)}"
        )
    return lines


def hint(name: str, known: Iterable[str]) -> str:
    """Suggest the name that was probably meant: a similar one, or that of a topic's setting."""
    if name in TOPIC_SETTINGS and name not in known:
        return f"; did you mean {TOPIC_SETTINGS[name].name}?"
    plain = name.strip().lower().replace("_", ".").replace("-", ".")
    close = difflib.get_close_matches(plain, list(known), n=1, cutoff=_SIMILAR)
    return f"; did you mean {close[0]}?" if close else ""


def is_known(name: str) -> bool:
    """Whether Kafka 2.8 or this broker has a setting of this name."""
    return (
        name in SETTINGS
        or name in OTHER_NAMES
        or name.startswith(OWN_PREFIX)
        or inactive(name) is not None
        or listener_setting(name) is not None
    )


def _known_names() -> list[str]:
    return [*SETTINGS, *OTHER_NAMES, *INACTIVE]
