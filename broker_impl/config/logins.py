"""Users and passwords in a setting ``sasl.jaas.config``, in the form that Kafka accepts."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_impl.errors import ConfigError

_USER: Final = "user_"
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_ENTRY: Final = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|REQUIRED)\b(?P<options>.*);\s*", re.S
)
_OPTION: Final = re.compile(
    r"\s+(?P<name>[^\s=\"]+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s;\"]+))"
)


class Login(NamedTuple):
    """The contents of one ``sasl.jaas.config``."""

    username: str
    """The name with which this broker authenticates to other brokers; may be empty."""
    password: str
    users: Mapping[str, str]
    """The passwords of the users of PLAIN, by name."""


NO_LOGIN: Final = Login("", "", {})


def parse_login(name: str, mechanism: str, text: str) -> Login:
    """Parse ``MODULE required username="…" password="…" user_NAME="…";``.

    The error does not repeat the text, which has passwords.
    """
    entry = _ENTRY.fullmatch(text)
    module = _MODULES[mechanism]
    if entry is None or entry["module"] != module:
        raise ConfigError(f'{name}: must have the form {module} required name="value" …;')
    options: dict[str, str] = {}
    at = 0
    rest = entry["options"].rstrip()
    while at < len(rest):
        found = _OPTION.match(rest, at)
        if found is None:
            raise ConfigError(f'{name}: each option must have the form name="value"')
        quoted = found["quoted"]
        value = found["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        options[found["name"]] = value
        at = found.end()
    users = {
        option.removeprefix(_USER): value
        for option, value in options.items()
        if option.startswith(_USER) and option != _USER
    }
    return Login(options.get("username", ""), options.get("password", ""), users)
