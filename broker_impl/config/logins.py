"""Users and passwords in a setting ``sasl.jaas.config``, in the form that Kafka accepts."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_impl import jaas
from broker_impl.config.security import ZOOKEEPER_JAAS
from broker_impl.errors import ConfigError

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


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
    try:
        entry = jaas.entry(text, _MODULES[mechanism])
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    options = entry.options
    return Login(options.get("username", ""), options.get("password", ""), entry.users)


def zookeeper_login(text: str) -> Login | None:
    """Parse the login at ZooKeeper, ``DigestLoginModule required username="…" password="…";``.

    Returns None for an empty text. The error does not repeat the text, which has a password.
    """
    if not text:
        return None
    try:
        options = jaas.entry(text, jaas.ZOOKEEPER_MODULE).options
    except ConfigError as error:
        raise ConfigError(f"{ZOOKEEPER_JAAS}: {error}") from None
    if missing := [name for name in ("username", "password") if not options.get(name)]:
        raise ConfigError(f"{ZOOKEEPER_JAAS}: {missing[0]} is missing")
    return Login(options["username"], options["password"], {})
