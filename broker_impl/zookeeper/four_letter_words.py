"""Four-letter words: plain-text commands by which an operator queries a server.

The texts are those of Apache ZooKeeper 3.9. ``dump`` lists no timers of connections, because this
server has none.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from broker_impl.zookeeper import facts as values
from broker_impl.zookeeper.facts import NOT_SERVING, VERSION, ConnectionFacts, Facts
from broker_impl.zookeeper.pipeline import Pipeline


def reply(word: str, facts: Facts) -> str:
    """The text that answers a word of ``WORDS``."""
    if word in _ALWAYS:
        return _ALWAYS[word](facts)
    if facts.pipeline is None:
        return f"{NOT_SERVING}\n"
    return _SERVING[word](facts, facts.pipeline)


def _srvr(facts: Facts, pipeline: Pipeline) -> str:
    latency = pipeline.latency
    sizes = values.proposal_sizes(pipeline)
    proposals = "" if sizes is None else "Proposal sizes last/min/max: {}/{}/{}\n".format(*sizes)
    return (
        f"Zookeeper version: {VERSION}\n"
        f"Latency min/avg/max: {latency.min_ms}/{round(latency.mean_ms, 4)}/{latency.max_ms}\n"
        f"Received: {facts.received}\n"
        f"Sent: {facts.sent}\n"
        f"Connections: {len(facts.connections)}\n"
        f"Outstanding: {len(pipeline)}\n"
        f"Zxid: {pipeline.last_zxid:#x}\n"
        f"Mode: {pipeline.mode}\n"
        f"{proposals}"
        f"Node count: {len(pipeline.database.nodes)}\n"
    )


def _stat(facts: Facts, pipeline: Pipeline) -> str:
    version, rest = _srvr(facts, pipeline).split("\n", 1)
    clients = "".join(f" {_brief(connection)})\n" for connection in facts.connections)
    return f"{version}\nClients:\n{clients}\n{rest}"


def _cons(facts: Facts, pipeline: Pipeline) -> str:
    return "".join(f" {_whole(connection)})\n" for connection in facts.connections) + "\n"


def _brief(connection: ConnectionFacts) -> str:
    traffic = connection.traffic
    return (
        f"/{connection.peer}[{int(connection.is_read)}](queued={connection.queued},"
        f"recved={traffic.received},sent={traffic.sent}"
    )


def _whole(connection: ConnectionFacts) -> str:
    if not connection.session_id:
        return _brief(connection)
    traffic = connection.traffic
    latency = traffic.latency
    cxid = f",lcxid={traffic.last_cxid:#x}" if traffic.last_cxid >= 0 else ""
    return (
        f"{_brief(connection)},sid={values.number(connection.session_id)}"
        f",lop={values.operation(traffic.last_op)},est={connection.established_ms}"
        f",to={connection.timeout_ms}{cxid},lzxid={values.number(traffic.last_zxid)}"
        f",lresp={int(traffic.last_response_s * 1000)},llat={traffic.last_latency_ms}"
        f",minlat={latency.min_ms},avglat={int(latency.mean_ms)},maxlat={latency.max_ms}"
    )


def _mntr(facts: Facts, pipeline: Pipeline) -> str:
    figures = values.monitor(facts, pipeline)
    return "".join(f"zk_{key}\t{value}\n" for key, value in figures.items())


def _envi(facts: Facts) -> str:
    return f"Environment:\nzookeeper.version={VERSION}\n"


def _conf(facts: Facts, pipeline: Pipeline) -> str:
    return "".join(
        f"{key}: \n{value}\n" if "\n" in value else f"{key}={value}\n"
        for key, value in facts.settings
    )


def _dump(facts: Facts, pipeline: Pipeline) -> str:
    owned = values.ephemerals(pipeline)
    nodes = "".join(
        f"{values.number(session_id)}:\n" + "".join(f"\t{path}\n" for path in paths)
        for session_id, paths in owned.items()
    )
    return (
        f"SessionTracker dump:\n{_sessions(pipeline)}"
        f"ephemeral nodes dump:\nSessions with Ephemerals ({len(owned)}):\n{nodes}"
    )


def _sessions(pipeline: Pipeline) -> str:
    """The sessions: when they expire, at the server that decides this; else their timeouts."""
    sets = values.expiries(pipeline)
    sessions = pipeline.database.sessions
    if sets is None:
        lines = (f"{values.number(id_)}\t{ms}ms\n" for id_, ms in sorted(sessions.items()))
        return f"Global Sessions({len(sessions)}):\n{''.join(lines)}"
    count = sum(len(ids) for _, ids in sets)
    return f"Session Sets ({len(sets)})/({count}):\n" + "".join(
        f"{len(ids)} expire at {_date(wall_ms)}:\n{_ids(ids)}" for wall_ms, ids in sets
    )


def _ids(ids: Sequence[int]) -> str:
    return "".join(f"\t{values.number(session_id)}\n" for session_id in ids)


def _date(wall_ms: int) -> str:
    """Write a time as Java's ``Date`` does."""
    return datetime.fromtimestamp(wall_ms // 1000, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def _wchs(facts: Facts, pipeline: Pipeline) -> str:
    watches = pipeline.watches
    return (
        f"{watches.watchers} connections watching {watches.paths} paths\n"
        f"Total watches:{len(watches)}\n"
    )


def _wchc(facts: Facts, pipeline: Pipeline) -> str:
    watched = values.watches_by_session(pipeline)
    return "".join(
        f"{values.number(session_id)}\n" + "".join(f"\t{path}\n" for path in paths)
        for session_id, paths in watched.items()
    ) + "\n"  # fmt: skip


def _wchp(facts: Facts, pipeline: Pipeline) -> str:
    watching = values.watches_by_path(pipeline)
    return "".join(f"{path}\n{_ids(ids)}" for path, ids in watching.items()) + "\n"


def _crst(facts: Facts, pipeline: Pipeline) -> str:
    facts.reset_connections()
    return "Connection stats reset.\n"


def _srst(facts: Facts, pipeline: Pipeline) -> str:
    facts.reset_server()
    return "Server stats reset.\n"


_ALWAYS: dict[str, Callable[[Facts], str]] = {
    "envi": _envi,
    "isro": lambda facts: "null" if facts.pipeline is None else "rw",
    "ruok": lambda facts: "imok",
}
_SERVING: dict[str, Callable[[Facts, Pipeline], str]] = {
    "conf": _conf,
    "cons": _cons,
    "crst": _crst,
    "dump": _dump,
    "mntr": _mntr,
    "srst": _srst,
    "srvr": _srvr,
    "stat": _stat,
    "wchc": _wchc,
    "wchp": _wchp,
    "wchs": _wchs,
}
WORDS = frozenset(_ALWAYS | _SERVING)
"""The words that are answered."""
