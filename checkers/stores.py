"""Files and folders at URIs, as the file systems of Hadoop see them through a Spark session.

The clients of these file systems repeat a request for minutes by default. Here they give up
earlier, unless the user has configured otherwise, and a question about names is given up after
:data:`ANSWER_S`.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from checkers import engine
from model.history import BadHistory

ANSWER_S = 90.0
"""How many seconds a store has to answer a question about names, or for a few bytes."""
PATIENCE: Mapping[str, str] = {
    "fs.s3a.attempts.maximum": "2",
    "fs.s3a.retry.limit": "2",
    "fs.s3a.retry.throttle.limit": "5",
    "fs.s3a.connection.establish.timeout": "10s",
    "fs.s3a.connection.timeout": "60s",
    "fs.azure.io.retry.max.retries": "3",
    "ipc.client.connect.timeout": "10000",
    "ipc.client.connect.max.retries": "2",
    "ipc.client.connect.max.retries.on.timeouts": "1",
    "dfs.client.failover.max.attempts": "4",
    "dfs.client.socket-timeout": "30000",
}
"""Settings of clients, for those that the user has not configured."""
_MAGIC = frozenset("*?[]{}")
_T = TypeVar("_T")


class Entry(NamedTuple):
    """A file or a folder."""

    uri: str
    size: int
    is_folder: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.uri.rstrip("/").rpartition("/")[2]


class Store:
    """Answers questions about URIs. Errors are raised as :class:`~model.history.BadHistory`."""

    def __init__(self, session: Any) -> None:
        context = session.sparkContext
        self._java = context._jvm
        self._conf = context._jsc.hadoopConfiguration()
        self._java.org.apache.hadoop.hdfs.HdfsConfiguration.init()  # reads hdfs-site.xml
        for name, value in PATIENCE.items():
            if _is_default(self._conf.getPropertySources(name)):
                self._conf.set(name, value)
        self._version = str(self._java.org.apache.hadoop.util.VersionInfo.getVersion())

    def matching(self, uri: str) -> list[Entry]:
        """Return the file or folder at a URI, or those that match it as a pattern, sorted."""

        def ask() -> list[Entry]:
            path, files = self._at(uri)
            if files.exists(path):
                status = files.getFileStatus(path)
                return [_entry(status)._replace(uri=uri)]
            found = files.globStatus(path) if _MAGIC & {*uri} else None
            return sorted(map(_entry, found or ()))

        found = self._asked(uri, ask)
        if not found:
            is_pattern = bool(_MAGIC & {*uri})
            what = "no file or folder has such a name" if is_pattern else "it does not exist"
            raise BadHistory(f"{engine.redacted(uri)}: {what}")
        return found

    def inside(self, uri: str) -> list[Entry]:
        """Return what is in a folder, sorted."""

        def ask() -> list[Entry]:
            path, files = self._at(uri)
            return sorted(map(_entry, files.listStatus(path)))

        return self._asked(uri, ask)

    def read(self, uri: str, begin: int, length: int) -> bytes:
        """Return at most so many bytes of a file, from this position on."""

        def ask() -> bytes:
            path, files = self._at(uri)
            stream = files.open(path)
            try:
                stream.seek(begin)
                return bytes(stream.readNBytes(length))
            finally:
                stream.close()

        return self._asked(uri, ask)

    def copy(self, uri: str, target: Path) -> None:
        """Copy a file to this machine, however long that takes."""

        def ask() -> None:
            path, files = self._at(uri)
            there = self._java.org.apache.hadoop.fs.Path(str(target))
            files.copyToLocalFile(False, path, there, True)

        self._asked(uri, ask, None)

    def _at(self, uri: str) -> tuple[Any, Any]:
        path = self._java.org.apache.hadoop.fs.Path(uri)
        return path, path.getFileSystem(self._conf)

    def _asked(self, uri: str, ask: Callable[[], _T], answer_s: float | None = ANSWER_S) -> _T:
        """Return the answer. A thread waits for it, since a client may ignore interrupts."""
        answers: list[_T] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                answers.append(ask())
            except Exception as error:  # noqa: BLE001 - errors of Java have many types
                errors.append(error)

        thread = threading.Thread(target=run, name="store", daemon=True)
        thread.start()
        thread.join(answer_s)
        name = engine.redacted(uri)
        if errors:
            causes = [*_causes(errors[0])]
            why = explained(urlsplit(uri).scheme, causes, self._version)
            raise BadHistory(f"{name} cannot be read: {engine.redacted(why)}") from None
        if not answers:
            raise BadHistory(f"{name} cannot be read: nothing answers within {answer_s:.0f} s")
        return answers[0]


def _is_default(sources: Any) -> bool:
    """Return whether only Hadoop itself has set a value."""
    return sources is None or all(str(each).endswith("-default.xml") for each in sources)


def _entry(status: Any) -> Entry:
    return Entry(str(status.getPath().toString()), int(status.getLen()), bool(status.isDirectory()))


Cause = tuple[str, str]
"""The name of a Java exception's class, without its package, and its message."""


def _causes(error: Exception) -> Iterator[Cause]:
    """Yield an exception of Java and its causes."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        yield type(error).__name__, str(error)
    for _ in range(20):
        if java is None:
            return
        yield java.getClass().getName().rpartition(".")[2], str(java.getMessage() or "")
        java = java.getCause()


def explained(scheme: str, causes: list[Cause], version: str) -> str:
    """Return why a request has failed, for the exceptions of Hadoop ``version``."""
    names = {name for name, _ in causes}
    messages = " ".join(message for _, message in causes)
    if "ClassNotFoundException" in names:
        if scheme == "s3a":
            return (
                "Spark has no library for s3a: add"
                f" --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
            )
        return (
            f"Spark has no library for {scheme}: add it with --conf spark.jars.packages=…"
            f" ({_first(causes[-1][1])})"
        )
    if "UnsupportedFileSystemException" in names:
        return f"Hadoop has no file system for {scheme}:, or its library is missing"
    if "UnknownHostException" in names:
        return "its host is not known"
    if names & {"UnknownStoreException", "NoSuchBucketException"}:
        return "there is no such bucket"
    if names & {"NoAuthWithAWSException", "CredentialInitializationException"}:
        return "there are no credentials for it"
    if names & {"AccessDeniedException", "AccessControlException"} or "(403)" in messages:
        return "permission is denied"
    if "FileNotFoundException" in names:
        return "it does not exist"
    if names & _UNREACHABLE:
        return f"it cannot be reached ({_first(causes[-1][1]) or causes[-1][0]})"
    return next((_first(message) for _, message in causes if message), causes[0][0])


_UNREACHABLE = {
    *("ConnectException", "ConnectTimeoutException", "SocketTimeoutException"),
    *("NoRouteToHostException", "HttpHostConnectException", "ApiCallTimeoutException"),
}


def _first(message: str) -> str:
    """Return the first line of a message."""
    return message.strip().partition("\n")[0]
