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

    pipeline: Pipeline
    connections: Sequence[ConnectionFacts]
    settings: Sequence[tuple[str, str]]
    received: int
    sent: int


def reply(word: str, facts: Facts) -> str:
    """The text that answers a word of ``WORDS``."""
    return WORDS[word](facts)


def _srvr(facts: Facts) -> str:
    latency = facts.pipeline.latency
    return (
        f"Zookeeper version: {VERSION}\n"
        f"Latency min/avg/max: {latency.min_ms}/{latency.mean_ms:.4f}/{latency.max_ms}\n"
        f"Received: {facts.received}\n"
        f"Sent: {facts.sent}\n"
        f"Connections: {len(facts.connections)}\n"
        f"Outstanding: {len(facts.pipeline)}\n"
        f"Zxid: {facts.pipeline.database.last_zxid:#x}\n"
        "Mode: standalone\n"
        f"Node count: {len(facts.pipeline.database.nodes)}\n"
    )


def _stat(facts: Facts) -> str:
    version, rest = _srvr(facts).split("\n", 1)
    clients = "".join(f" {_line(connection)}\n" for connection in facts.connections)
    return f"{version}\nClients:\n{clients}\n{rest}"


def _cons(facts: Facts) -> str:
    return "".join(
        f" {_line(connection).removesuffix(')')},sid={connection.session_id:#x})\n"
        for connection in facts.connections
    )


def _line(connection: ConnectionFacts) -> str:
    return (
        f"/{connection.peer}[1](queued={connection.queued},"
        f"recved={connection.received},sent={connection.sent})"
    )


def _mntr(facts: Facts) -> str:
    pipeline, latency = facts.pipeline, facts.pipeline.latency
    database = pipeline.database
    values = {
        "zk_version": VERSION,
        "zk_server_state": "standalone",
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
    }
    return "".join(f"{key}\t{value}\n" for key, value in values.items())


def _envi(facts: Facts) -> str:
    return f"Environment:\nzookeeper.version={VERSION}\n"


def _conf(facts: Facts) -> str:
    return "".join(f"{key}={value}\n" for key, value in facts.settings)


def _dump(facts: Facts) -> str:
    database = facts.pipeline.database
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


def _wchs(facts: Facts) -> str:
    watches = facts.pipeline.watches
    return (
        f"{watches.watchers} connections watching {watches.paths} paths\n"
        f"Total watches:{len(watches)}\n"
    )


WORDS: dict[str, Callable[[Facts], str]] = {
    "conf": _conf,
    "cons": _cons,
    "dump": _dump,
    "envi": _envi,
    "isro": lambda facts: "rw",
    "mntr": _mntr,
    "ruok": lambda facts: "imok",
    "srvr": _srvr,
    "stat": _stat,
    "wchs": _wchs,
}
