"""Which client and broker settings a plan may not contain, and why: a plan is data.

A plan may come from an untrusted source: a file, another person's folder, a suite. Nothing in it
may make this program load code, run a command, access a file outside the run's folder, or connect
the clients to anything but the run's own cluster. The rules look at the words of a setting's name
and at the form of its value, so that they also cover settings that did not exist when the rules
were written. ``docs/plan-settings.md`` lists the rules for users.
"""

import re
from collections.abc import Iterator, Mapping

CODE = "it names code to load"
COMMAND = "it names or starts a command"
FILE = "it names a file or folder"
ADDRESS = "it names an address; a run connects its clients and brokers by itself"
OUTPUT = "it makes the client print directly to the terminal"
SIGNAL = "it makes the client send signals to this process"
LAYOUT = "the run itself numbers its brokers and lays out their listeners"
CLASS = "its value is the name of a class"
INDIRECT = "its value has the form of a path, a URL or an expression"
CONTROL = "its value contains control characters"

ANYWHERE: Mapping[str, str] = {
    **dict.fromkeys(("plugin", "plugins", "library", "libraries", "lib", "libs"), CODE),
    **dict.fromkeys(("interceptor", "interceptors", "provider", "providers", "engine"), CODE),
    **dict.fromkeys(("class", "classes", "jaas", "jndi", "opaque", "hook", "hooks"), CODE),
    **dict.fromkeys(("serializer", "deserializer", "cnxn"), CODE),
    **dict.fromkeys(("kerberos", "kinit", "gssapi", "exec", "shell", "script"), COMMAND),
    **dict.fromkeys(("oauth", "oauthbearer", "jwks", "oidc"), ADDRESS),
}
"""Words that are forbidden anywhere in a setting's name."""

AT_THE_END: Mapping[str, str] = {
    **dict.fromkeys(("classname", "module", "modules", "factory"), CODE),
    **dict.fromkeys(("builder", "reporter", "reporters", "handler", "handlers"), CODE),
    **dict.fromkeys(("cb", "callback", "callbacks", "cmp", "context", "selector"), CODE),
    **dict.fromkeys(("assignors", "logger", "loop"), CODE),
    **dict.fromkeys(("cmd", "command", "commands", "executable", "program", "scripts"), COMMAND),
    **dict.fromkeys(("location", "locations", "path", "paths", "file", "files"), FILE),
    **dict.fromkeys(("filename", "filenames", "dir", "dirs", "directory", "directories"), FILE),
    **dict.fromkeys(("folder", "folders", "stores", "keytab", "keystore", "truststore"), FILE),
    **dict.fromkeys(("cafile", "certfile", "keyfile", "crlfile", "capath"), FILE),
    **dict.fromkeys(("url", "urls", "uri", "uris", "endpoint", "endpoints", "proxy"), ADDRESS),
    **dict.fromkeys(("server", "servers", "host", "hosts", "hostname", "port", "ports"), ADDRESS),
    **dict.fromkeys(("address", "addresses", "connect", "listener", "listeners"), ADDRESS),
    "voters": ADDRESS,
}
"""Words that are forbidden as the last word of a setting's name."""

AT_THE_START: Mapping[tuple[str, ...], str] = {
    ("on",): CODE,  # on_delivery, on_commit, …
    ("default", "topic", "conf"): CODE,
    ("offset", "store"): FILE,  # offset.store.method=file writes into the current directory
    ("metadata", "broker", "list"): ADDRESS,
    ("host", "name"): ADDRESS,
    ("advertised",): ADDRESS,
    ("test",): ADDRESS,  # test.mock.num.brokers connects clients to a cluster that is not tested
    ("faultline",): ADDRESS,
    ("debug",): OUTPUT,
    ("log", "level"): OUTPUT,
    ("log", "queue"): OUTPUT,
    ("internal", "termination", "signal"): SIGNAL,
    ("broker", "id"): LAYOUT,
    ("node", "id"): LAYOUT,
    ("process", "roles"): LAYOUT,
    ("listener",): LAYOUT,
    ("inter", "broker", "listener"): LAYOUT,
    ("control", "plane", "listener"): LAYOUT,
    ("controller", "listener"): LAYOUT,
}
"""Words that are forbidden as the first words of a setting's name."""

CHOICES: Mapping[str, frozenset[str]] = {
    "replica.selector.class": frozenset(
        {
            "",
            "org.apache.kafka.common.replica.LeaderSelector",
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        }
    ),
}
"""Permitted settings whose names contain a forbidden word, with the values that they may have."""

TEXT = frozenset(
    {
        *("client.id", "client.rack", "broker.rack", "group.id", "group.instance.id"),
        *("transactional.id", "topic.blacklist", "sasl.username", "ssl.key.pem", "ssl.ca.pem"),
        *("ssl.certificate.pem", "https.ca.pem", "ssl.keystore.key"),
        *("ssl.keystore.certificate.chain", "ssl.truststore.certificates"),
    }
)
"""Settings with plain text that is not interpreted, in addition to passwords and secrets."""

MECHANISMS = re.compile(r"PLAIN|SCRAM-SHA-(256|512)", re.IGNORECASE)
"""The SASL mechanisms that need no commands, tickets or token services."""
_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
_PROTOCOL = "security.protocol"

_WORD = re.compile(r"[a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CLASS = re.compile(r"(^|[,\s])[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\.[A-Z]\w*([,\s]|$)")
_INDIRECT = re.compile(r"[/\\$`~{}]|%\{|^\.{1,2}$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def refusal(settings: Mapping[str, Mapping[str, str]]) -> str | None:
    """Return why a plan may not contain these settings, in one line; ``None`` if it may.

    The line names the first such setting. ``settings`` maps names to values for each of ``broker``,
    ``producer`` and ``consumer``.
    """
    for component, table in settings.items():
        for name, value in table.items():
            if (why := _why(name, value)) is not None:
                return _line(component, name, why)
        if (kinit := _starts_kinit(table)) is not None:
            return _line(
                component, kinit, f"{COMMAND} (kinit, unless sasl.mechanism is PLAIN or SCRAM)"
            )
    return None


def _line(component: str, name: str, why: str) -> str:
    return f"--set {component}.{name}: {why}; a plan is data, and may not contain such a setting"


def _why(name: str, value: str) -> str | None:
    """Return what is wrong with one setting; ``None`` if nothing is."""
    if name in CHOICES and value in CHOICES[name]:
        return None
    return next(_of_name(name), None) or _of_value(name, value)


def _of_name(name: str) -> Iterator[str]:
    for spelling in (name, _CAMEL.sub(".", name)):
        words = tuple(_WORD.findall(spelling.lower()))
        for start, why in AT_THE_START.items():
            if words[: len(start)] == start:
                yield why
        for word in words:
            if word in ANYWHERE:
                yield ANYWHERE[word]
        if words and words[-1] in AT_THE_END:
            yield AT_THE_END[words[-1]]


def _of_value(name: str, value: str) -> str | None:
    name = name.lower().replace("_", ".")
    if name in _MECHANISM and not MECHANISMS.fullmatch(value.strip()):
        return "SASL mechanisms other than PLAIN and SCRAM start commands or connect to addresses"
    if name in TEXT or "password" in name or "secret" in name:
        return None
    if _CONTROL.search(value):
        return CONTROL
    if _INDIRECT.search(value):
        return INDIRECT
    return CLASS if _CLASS.search(value) else None


def _starts_kinit(table: Mapping[str, str]) -> str | None:
    """Return the setting that enables SASL with its default mechanism; ``None`` if there is none.

    The default is GSSAPI, for which librdkafka runs ``kinit`` in a shell.
    """
    plain = {name.lower().replace("_", "."): (name, value) for name, value in table.items()}
    name, value = plain.get(_PROTOCOL, ("", ""))
    is_sasl = value.strip().lower().startswith("sasl")
    return name if is_sasl and not any(each in plain for each in _MECHANISM) else None
