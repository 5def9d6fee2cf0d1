"""Four-letter words: plain-text commands by which an operator queries a server."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker_impl.zookeeper.pipeline import Pipeline

VERSION = "3.8.0-faultline"
"""The release whose protocol is implemented; kazoo reads it from ``envi``."""


class ConnectionFacts(NamedTuple):
    """One connection, as ``stat`` and ``cons`` list it."""

    peer: str
    session_id: int
    queued: int
    received: int
    sent: int


class Facts(NamedTuple):
    """The data from which the words are answered."""

    pipeline: Pipeline | None
    """None if the server does not serve clients, because it has no leader."""
    connections: Sequence[ConnectionFacts]
    settings: Sequence[tuple[str, str]]
    received: int
    sent: int


NOT_SERVING = "This ZooKeeper instance is not currently serving requests\n"
"""The answer of a server without a leader."""


def reply(word: str, facts: Facts) -> str:
    """The text that answers a word of ``WORDS``."""
    if word in _ALWAYS:
        return _ALWAYS[word](facts)
    if facts.pipeline is None:
        return NOT_SERVING
    return _SERVING[word](facts, facts.pipeline)


def _srvr(facts: Facts, pipeline: Pipeline) -> str:
    latency = pipeline.latency
    return (
        f"Zookeeper version: {VERSION}\n"
        f"Latency min/avg/max: {latency.min_ms}/{latency.mean_ms:.4f}/{latency.max_ms}\n"
        f"Received: {facts.received}\n"
        f"Sent: {facts.sent}\n"
        f"Connections: {len(facts.connections)}\n"
        f"Outstanding: {len(pipeline)}\n"
        f"Zxid: {pipeline.last_zxid:#x}\n"
        f"Mode: {pipeline.mode}\n"
        f"Node count: {len(pipeline.database.nodes)}\n"
    )


def _stat(facts: Facts, pipeline: Pipeline) -> str:
    version, rest = _srvr(facts, pipeline).split("\n", 1)
    clients = "".join(f" {_line(connection)}\n" for connection in facts.connections)
    return f"{version}\nClients:\n{clients}\n{rest}"


def _cons(facts: Facts, pipeline: Pipeline) -> str:
    return "".join(
        f" {_line(connection).removesuffix(')')},sid={connection.session_id:#x})\n"
        for connection in facts.connections
    )


def _line(connection: ConnectionFacts) -> str:
    return (
        f"/{connection.peer}[1](queued={connection.queued},"
        f"recved={connection.received},sent={connection.sent})"
    )


def _mntr(facts: Facts, pipeline: Pipeline) -> str:
    latency = pipeline.latency
    database = pipeline.database
    values = {
        "zk_version": VERSION,
        "zk_server_state": pipeline.mode,
        "zk_avg_latency": f"{latency.mean_ms:.4f}",
        "zk_max_latency": latency.max_ms,
        "zk_min_latency": latency.min_ms,
        "zk_packets_received": facts.received,
        "zk_packets_sent": facts.sent,
        "zk_num_alive_connections": len(facts.connections),
        "zk_outstanding_requests": len(pipeline),
        "zk_znode_count": len(database.nodes),
        "zk_watch_count": len(pipeline.watches),
        "zk_ephemerals_count": sum(map(len, database.ephemerals.values())),
        "zk_approximate_data_size": sum(
            len(path) + len(node.data or b"") for path, node in database.nodes.items()
        ),
        "zk_global_sessions": len(database.sessions),
        **pipeline.role_figures(),
    }
    return "".join(f"{key}\t{value}\n" for key, value in values.items())


def _envi(facts: Facts) -> str:
    return f"Environment:\nzookeeper.version={VERSION}\n"


def _conf(facts: Facts, pipeline: Pipeline) -> str:
    return "".join(f"{key}={value}\n" for key, value in facts.settings)


def _dump(facts: Facts, pipeline: Pipeline) -> str:
    database = pipeline.database
    sessions = "".join(
        f"{session_id:#x}\t{timeout_ms}ms\n"
        for session_id, timeout_ms in sorted(database.sessions.items())
    )
    owned = "".join(
        f"{session_id:#x}:\n" + "".join(f"\t{path}\n" for path in sorted(paths))
        for session_id, paths in sorted(database.ephemerals.items())
    )
    return (
        f"SessionTracker dump:\nGlobal Sessions({len(database.sessions)}):\n{sessions}"
        f"ephemeral nodes dump:\nSessions with Ephemerals ({len(database.ephemerals)}):\n{owned}"
    )


def _wchs(facts: Facts, pipeline: Pipeline) -> str:
    watches = pipeline.watches
    return (
        f"{watches.watchers} connections watching {watches.paths} paths\n"
        f"Total watches:{len(watches)}\n"
    )


_ALWAYS: dict[str, Callable[[Facts], str]] = {
    "envi": _envi,
    "isro": lambda facts: "null" if facts.pipeline is None else "rw",
    "ruok": lambda facts: "imok",
}
_SERVING: dict[str, Callable[[Facts, Pipeline], str]] = {
    "conf": _conf,
    "cons": _cons,
    "dump": _dump,
    "mntr": _mntr,
    "srvr": _srvr,
    "stat": _stat,
    "wchs": _wchs,
}
WORDS = frozenset(_ALWAYS | _SERVING)
"""The words that are answered."""
