"""Logins in the form of Java's JAAS files: ``MODULE required name="value" name="value";``.

A file has sections, ``NAME { … };``, and comments as in Java. Errors do not repeat what they found,
which has passwords.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_impl.errors import ConfigError

ZOOKEEPER_MODULE: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
"""The module of servers and clients of ZooKeeper for DIGEST-MD5."""
USER: Final = "user_"
"""What the names of options begin with that are the passwords of users."""
_ENTRY: Final = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|REQUIRED)\b(?P<options>.*);\s*", re.S
)
_OPTION: Final = re.compile(
    r"\s+(?P<name>[^\s=\"]+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s;\"]+))"
)
_TOKEN: Final = re.compile(r'(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<comment>//[^\n]*|/\*.*?\*/)', re.S)
_SECTION: Final = re.compile(r'\s*(?P<name>\w+)\s*\{(?P<entry>(?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}\s*;')


class Entry(NamedTuple):
    """A login."""

    module: str
    """The name of the Java class."""
    options: Mapping[str, str]

    @property
    def users(self) -> dict[str, str]:
        """The passwords that options ``user_NAME`` have, by name."""
        return {
            name.removeprefix(USER): value
            for name, value in self.options.items()
            if name.startswith(USER) and name != USER
        }


def entry(text: str, module: str) -> Entry:
    """Parse one login, which must be of this module; raises ConfigError."""
    found = _ENTRY.fullmatch(text)
    if found is None or found["module"] != module:
        raise ConfigError(f'must have the form {module} required name="value" …;')
    options: dict[str, str] = {}
    at = 0
    rest = found["options"].rstrip()
    while at < len(rest):
        option = _OPTION.match(rest, at)
        if option is None:
            raise ConfigError('each option must have the form name="value"')
        quoted = option["quoted"]
        value = option["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        options[option["name"]] = value
        at = option.end()
    return Entry(module, options)


def section(text: str, name: str, module: str) -> Entry:
    """Parse the login in the section of a file with this name; raises ConfigError."""
    text = _TOKEN.sub(lambda found: found["quoted"] or " ", text).strip()
    at = 0
    while at < len(text):
        found = _SECTION.match(text, at)
        if found is None:
            raise ConfigError("each section must have the form NAME { … };")
        if found["name"] == name:
            return entry(found["entry"], module)
        at = found.end()
    raise ConfigError(f"there is no section {name}")
