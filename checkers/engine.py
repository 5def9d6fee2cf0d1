"""Which Spark judges: a local one, the user's cluster, or a server of Spark Connect; its settings.

A setting comes from the command line (``--conf``), else from Spark's own ``spark-defaults.conf``,
else from Faultline, which fits a session to this machine. A user cannot change
the few settings on which a verdict depends, or which say where files are written.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

DEFAULTS_FILE = "spark-defaults.conf"


class Fixed(NamedTuple):
    """A setting that a user cannot change."""

    why: str
    value: str | None = None
    """``None`` if it is decided when the session starts."""
    is_of_session: bool = False
    """Whether a running session can change it."""


FIXED: Mapping[str, Fixed] = {
    "spark.master": Fixed("it is chosen by --spark-master"),
    "spark.submit.deployMode": Fixed("the driver is this process", "client"),
    "spark.sql.warehouse.dir": Fixed("it is in the folder that is judged"),
    "spark.sql.catalogImplementation": Fixed("no tables are stored", "in-memory"),
    "spark.sql.adaptive.enabled": Fixed("it would join what is split on purpose", "false", True),
    "spark.sql.session.timeZone": Fixed("times are in UTC", "UTC", True),
    "spark.sql.files.ignoreMissingFiles": Fixed(
        "a missing file would look like lost records", "false", True
    ),
    "spark.sql.files.ignoreCorruptFiles": Fixed(
        "a damaged file would look like lost records", "false", True
    ),
    "spark.sql.execution.arrow.useLargeVarTypes": Fixed(
        "the tables have other types", "false", True
    ),
}
_SECRET = re.compile(
    r"secret|passw|passphrase|token|credential|(access|account|encryption)[.-]?key|[.]sas[.]",
    re.IGNORECASE,
)
"""Matches the names of settings whose values are not shown."""
_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^/\s@]+@")
"""Matches a URI up to the end of a password in it."""
HIDDEN = "(hidden)"
_LOCAL = "local"
REMOTE_PORT = 15002
"""The port of a Spark Connect server whose URL has none."""
_LINE = re.compile(r"\s*(spark\.[^\s=:]+)\s*[=:\s]\s*(.*\S)")
"""A line of a file of properties: a name, and after ``=``, ``:`` or blanks a value."""


class NoSpark(Exception):
    """Spark cannot be started; the message says why, in one sentence."""


class BadEngine(ValueError):
    """There is no such engine, or a setting is not possible; one sentence says what is."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A Spark to use, and settings of the user."""

    master: str | None = None
    """The URL of a cluster manager, such as ``spark://host:7077``; ``None`` for all cores of this
    machine."""
    conf: Mapping[str, str] = field(default_factory=dict)
    remote: str | None = None
    """The URL of a Spark Connect server, ``sc://HOST:PORT``; there is no ``master`` then."""

    @classmethod
    def of(cls, master: str | None, conf: Sequence[str], remote: str | None = None) -> Self:
        """Return the engine of a command line; ``conf`` has texts ``KEY=VALUE``.

        Raises :class:`BadEngine`.
        """
        if remote is not None:
            if master is not None:
                raise BadEngine("--spark-remote and --spark-master name two engines: leave out one")
            remote_address(remote)
        if master is not None and not _is_master(master):
            raise BadEngine(
                f"--spark-master {master}: must be local[N], spark://HOST:PORT, yarn or k8s://URL"
            )
        found: dict[str, str] = {}
        for text in conf:
            name, equals, value = text.partition("=")
            if not equals or not name.startswith("spark."):
                raise BadEngine(f"--conf {name}: write spark.KEY=VALUE")  # a value may be secret
            if name in found:
                raise BadEngine(f"--conf {name}: this setting is given more than once")
            if name in FIXED:
                raise BadEngine(f"--conf {name}: it cannot be set: {FIXED[name].why}")
            found[name] = value
        return cls(master, found, remote)

    @property
    def is_local(self) -> bool:
        """Return whether the executors are threads of the driver's JVM."""
        return self.master is None or self.master.startswith(_LOCAL)

    @property
    def is_on_loopback(self) -> bool:
        """Return whether no other machine takes part, by the address of the master."""
        if self.master is None or self.is_local:
            return True
        host = urlsplit(self.master.split(",")[0]).hostname or ""
        return host == "localhost" or host.startswith("127.") or host == "::1"

    def settings(self, ours: Mapping[str, str], fixed: Mapping[str, str]) -> dict[str, str]:
        """Return all settings of a session, given Faultline's defaults and what is fixed."""
        master = self.master or f"local[{cores()}]"
        return {**ours, **_defaults(), **self.conf, **fixed, "spark.master": master}


def remote_address(url: str) -> tuple[str, int]:
    """Return host and port of a Spark Connect server. Raises :class:`BadEngine`."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not url.startswith("sc://"):
        raise BadEngine(
            f"--spark-remote {url}: must be sc://HOST:PORT, with /;KEY=VALUE if need be"
        )
    return host, REMOTE_PORT if port is None else port


def fixed_values(*, of_session: bool = False) -> dict[str, str]:
    """Return the fixed values, on request only those that a running session can change."""
    return {
        name: fixed.value
        for name, fixed in FIXED.items()
        if fixed.value is not None and (fixed.is_of_session or not of_session)
    }


LOCAL = Engine()
"""All cores of this machine."""
_selected = [LOCAL]


def select(engine: Engine) -> None:
    """Use this engine for all sessions that this process starts from now on."""
    _selected[0] = engine


def selected() -> Engine:
    """Return the engine for sessions of this process."""
    return _selected[0]


def is_secret(name: str) -> bool:
    """Return whether the value of a setting must not be shown."""
    return _SECRET.search(name) is not None


def redacted(text: str) -> str:
    """Return a text without the values of secret settings, and without passwords in URIs."""
    settings = {**_defaults(), **selected().conf}
    for name, value in settings.items():
        if is_secret(name) and value not in ("", "true", "false"):
            text = text.replace(value, HIDDEN)
    return _PASSWORD.sub(rf"\1{HIDDEN}@", text)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def memory_bytes() -> int:
    """Return the memory of this machine, or of this process's control group if that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _is_master(text: str) -> bool:
    if text in (_LOCAL, "yarn"):
        return True
    try:
        urlsplit(text)
    except ValueError:
        return False
    is_local = text.startswith(f"{_LOCAL}[") and text.endswith("]")
    return is_local or (text.startswith(("spark://", "k8s://")) and not text.endswith("//"))


def _defaults() -> dict[str, str]:
    """Return the settings of ``spark-defaults.conf``, except those that a user cannot change.

    The file is in ``SPARK_CONF_DIR``, or in ``SPARK_HOME/conf``. Its lines are a name, blanks or
    ``=``, and a value.
    """
    folder = os.environ.get("SPARK_CONF_DIR")
    if not folder and (home := os.environ.get("SPARK_HOME")):
        folder = str(Path(home, "conf"))
    try:
        lines = Path(folder, DEFAULTS_FILE).read_text().splitlines() if folder else []
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [match.groups() for line in lines if (match := _LINE.match(line))]
    return {name: value.strip() for name, value in pairs if name not in FIXED}
