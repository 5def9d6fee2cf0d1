"""What operators can see of a server: the values behind four-letter words and HTTP answers.

The names are those of Apache ZooKeeper 3.9. Figures of parts that this server does not have (TLS,
caches, thread queues) are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from broker_impl.zookeeper.figures import Sizes, Traffic
from broker_impl.zookeeper.pipeline import Client, Pipeline
from broker_impl.zookeeper.records import Op
from broker_impl.zookeeper.sessions import SessionTracker

VERSION = "3.9.3-faultline"
"""The release whose protocol is implemented; kazoo reads it from ``envi``."""


NOT_SERVING = "This ZooKeeper instance is not currently serving requests"
"""The answer of a server without a leader."""


class ConnectionFacts(NamedTuple):
    """One connection."""

    peer: str
    session_id: int
    timeout_ms: int
    is_read: bool
    """Is the server reading from it?"""
    queued: int
    """The number of its requests that are not answered."""
    established_ms: int
    traffic: Traffic


class Facts(NamedTuple):
    """The data from which operators are answered."""

    pipeline: Pipeline | None
    """None if the server does not serve clients, because it has no leader."""
    connections: Sequence[ConnectionFacts]
    settings: Sequence[tuple[str, str]]
    received: int
    sent: int
    responses: Sizes
    """The sizes of what was sent to clients."""
    counters: Mapping[str, object]
    """Further figures of the server, by their names in ``mntr``."""
    reset_server: Callable[[], object]
    reset_connections: Callable[[], object]


OPERATIONS: dict[int, str] = {
    Op.CREATE_SESSION: "SESS",
    Op.CLOSE_SESSION: "CLOS",
    Op.PING: "PING",
    Op.CREATE: "CREA",
    Op.CREATE2: "CREA",
    Op.CREATE_CONTAINER: "CREA",
    Op.CREATE_TTL: "CREA",
    Op.DELETE: "DELE",
    Op.EXISTS: "EXIS",
    Op.GET_DATA: "GETD",
    Op.SET_DATA: "SETD",
    Op.GET_ACL: "GETA",
    Op.SET_ACL: "SETA",
    Op.GET_CHILDREN: "GETC",
    Op.GET_CHILDREN2: "GETC",
    Op.GET_ALL_CHILDREN_NUMBER: "GETACN",
    Op.GET_EPHEMERALS: "GETE",
    Op.SYNC: "SYNC",
    Op.MULTI: "MULT",
    Op.MULTI_READ: "MLTR",
    Op.CHECK: "CHEC",
    Op.RECONFIG: "RECO",
    Op.SET_WATCHES: "SETW",
    Op.SET_WATCHES2: "STW2",
    Op.ADD_WATCH: "ADDW",
    Op.CHECK_WATCHES: "CHKW",
    Op.REMOVE_WATCHES: "REMW",
    Op.WHO_AM_I: "HOMI",
}
"""The short names of operations, as ``cons`` lists them."""


def operation(op: int | None) -> str:
    """Return the short name of an operation; ``NA`` before the first."""
    return "NA" if op is None else OPERATIONS.get(op, "NA")


def number(session_id: int) -> str:
    """Return a session's id as Java prints a long in hexadecimal."""
    return f"{session_id % 2**64:#x}"


def monitor(facts: Facts, pipeline: Pipeline) -> dict[str, object]:
    """The figures of ``mntr``, without the prefix ``zk_``."""
    latency, database = pipeline.latency, pipeline.database
    return {
        "version": VERSION,
        "server_state": pipeline.mode,
        "avg_latency": round(latency.mean_ms, 4),
        "max_latency": latency.max_ms,
        "min_latency": latency.min_ms,
        "packets_received": facts.received,
        "packets_sent": facts.sent,
        "num_alive_connections": len(facts.connections),
        "outstanding_requests": len(pipeline),
        "znode_count": len(database.nodes),
        "watch_count": len(pipeline.watches),
        "ephemerals_count": sum(map(len, database.ephemerals.values())),
        "approximate_data_size": sum(
            len(path) + len(node.data or b"") for path, node in database.nodes.items()
        ),
        "global_sessions": len(database.sessions),
        "local_sessions": 0,
        "last_client_response_size": facts.responses.last,
        "max_client_response_size": facts.responses.max,
        "min_client_response_size": facts.responses.min,
        "auth_failed_count": pipeline.rejected_identities,
        **facts.counters,
        **pipeline.role_figures(),
    }


def server_stats(facts: Facts, pipeline: Pipeline) -> dict[str, object]:
    """The figures of the HTTP command ``server_stats``."""
    latency, sizes = pipeline.latency, facts.responses
    responses = {
        "last_buffer_size": sizes.last,
        "min_buffer_size": sizes.min,
        "max_buffer_size": sizes.max,
    }
    found: dict[str, object] = {
        "version": VERSION,
        "read_only": False,
        "server_stats": {
            "packets_sent": facts.sent,
            "packets_received": facts.received,
            "client_response_stats": responses,
            "last_processed_zxid": pipeline.last_zxid,
            "outstanding_requests": len(pipeline),
            "server_state": pipeline.mode,
            "avg_latency": round(latency.mean_ms, 4),
            "max_latency": latency.max_ms,
            "min_latency": latency.min_ms,
            "num_alive_client_connections": len(facts.connections),
            "auth_failed_count": pipeline.rejected_identities,
            "uptime": facts.counters.get("uptime"),
        },
        "client_response": responses,
    }
    if (proposals := proposal_sizes(pipeline)) is not None:
        found["proposal_stats"] = {
            "last_buffer_size": proposals[0],
            "min_buffer_size": proposals[1],
            "max_buffer_size": proposals[2],
        }
    found["node_count"] = len(pipeline.database.nodes)
    return found


def proposal_sizes(pipeline: Pipeline) -> tuple[object, object, object] | None:
    """Return the last, least and greatest size of a leader's proposals; None of other servers."""
    figures = pipeline.role_figures()
    if "last_proposal_size" not in figures:
        return None
    return (
        figures["last_proposal_size"],
        figures["min_proposal_size"],
        figures["max_proposal_size"],
    )


def connection(facts: ConnectionFacts, *, brief: bool) -> dict[str, object]:
    """One connection, as the HTTP commands list it; ``brief`` without its session."""
    traffic = facts.traffic
    found: dict[str, object] = {
        "remote_socket_address": facts.peer,
        "interest_ops": int(facts.is_read),
        "outstanding_requests": facts.queued,
        "packets_received": traffic.received,
        "packets_sent": traffic.sent,
    }
    if not brief and facts.session_id:
        found |= {
            "session_id": facts.session_id,
            "last_operation": operation(traffic.last_op),
            "established": facts.established_ms,
            "session_timeout": facts.timeout_ms,
            "last_cxid": traffic.last_cxid,
            "last_zxid": traffic.last_zxid,
            "last_response_time": int(traffic.last_response_s * 1000),
            "last_latency": traffic.last_latency_ms,
            "min_latency": traffic.latency.min_ms,
            "avg_latency": int(traffic.latency.mean_ms),
            "max_latency": traffic.latency.max_ms,
        }
    return found


def expiries(pipeline: Pipeline) -> list[tuple[int, list[int]]] | None:
    """Return when sessions expire (wall clock, ms), and which; None if another server decides."""
    tracker = pipeline.tracker
    if not isinstance(tracker, SessionTracker):
        return None
    return [(pipeline.wall_ms_at(second), ids) for second, ids in tracker.expiries()]


def ephemerals(pipeline: Pipeline) -> dict[int, list[str]]:
    """Return the ephemeral nodes of each session that has some."""
    owned = pipeline.database.ephemerals
    return {session_id: sorted(paths) for session_id, paths in sorted(owned.items())}


def watches_by_session(pipeline: Pipeline) -> dict[int, list[str]]:
    """Return the watched paths of each session that is connected here."""
    found: dict[int, set[str]] = {}
    for path, watchers in pipeline.watches.by_path().items():
        for watcher in watchers:
            found.setdefault(watcher.session_id, set()).add(path)
    return {session_id: sorted(paths) for session_id, paths in sorted(found.items())}


def watches_by_path(pipeline: Pipeline) -> dict[str, list[int]]:
    """Return the sessions that watch each path."""

    def sessions(watchers: set[Client]) -> list[int]:
        return sorted(watcher.session_id for watcher in watchers)

    return {path: sessions(found) for path, found in sorted(pipeline.watches.by_path().items())}
