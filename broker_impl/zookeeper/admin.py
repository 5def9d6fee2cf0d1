"""Answers to operators over HTTP: ``/commands/NAME`` as JSON, and one page about the server.

The commands, their names and their values are those of Apache ZooKeeper's admin server, as far as
this server has them. Each connection carries one request.
"""

import asyncio
import html
import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from broker_impl.zookeeper import facts as values
from broker_impl.zookeeper.facts import NOT_SERVING, VERSION, Facts
from broker_impl.zookeeper.pipeline import Pipeline

HEAD_BYTES_MAX = 8192
"""A longer request is refused."""
REQUEST_S_MAX = 10.0
"""How long a connection may take to send its request."""

Answer = dict[str, object]


class Response(NamedTuple):
    """An HTTP response."""

    status: str
    kind: str
    """Its content type."""
    text: str

    def encode(self) -> bytes:
        """Encode it with its head; the connection ends after it."""
        body = self.text.encode()
        return (
            f"HTTP/1.1 {self.status}\r\nContent-Type: {self.kind}; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n"
            "X-Content-Type-Options: nosniff\r\n\r\n"
        ).encode() + body


def respond(method: str, target: str, facts: Facts) -> Response:
    """Answer a request."""
    if method not in ("GET", "HEAD"):
        return Response("405 Method Not Allowed", "text/plain", "Only GET is supported.\n")
    path = target.partition("?")[0]
    command = path.removeprefix("/commands/")
    if path == "/":
        response = Response("200 OK", "text/html", page(facts))
    elif path in ("/commands", "/commands/"):
        response = Response("200 OK", "text/html", _links())
    elif path != command:
        text = json.dumps(run(command, facts), indent=2) + "\n"
        response = Response("200 OK", "application/json", text)
    else:
        response = Response("404 Not Found", "text/plain", "See /commands.\n")
    return response._replace(text="") if method == "HEAD" else response


def run(name: str, facts: Facts) -> Answer:
    """Return the answer to a command, by any of its names, with ``command`` and ``error``."""
    primary = _NAMES.get(name)
    if primary is None:
        return {"command": name, "error": f"Unknown command: {name}"}
    command = _COMMANDS[primary]
    if command.always is not None:
        answer = command.always(facts)
    elif facts.pipeline is None:
        return {"command": primary, "error": NOT_SERVING}
    else:
        assert command.serving is not None, "a command has an answer"
        answer = command.serving(facts, facts.pipeline)
    return {**answer, "command": primary, "error": answer.get("error")}


def _links() -> str:
    return "".join(f'<a href="/commands/{name}">{name}</a>\n<br/>\n' for name in _COMMANDS)


def page(facts: Facts) -> str:
    """One page about the server, for a browser: its figures, its clients, and the commands."""
    pipeline = facts.pipeline
    title = "ZooKeeper: " + ("not serving" if pipeline is None else pipeline.mode)
    parts = [f"<h1>{title}</h1>", f"<p>Version {VERSION}</p>"]
    if pipeline is None:
        parts.append(f"<p>{NOT_SERVING}</p>")
    else:
        figures = values.monitor(facts, pipeline)
        shown = {"zxid": f"{pipeline.last_zxid:#x}", **figures}
        parts += ["<h2>Figures</h2>", _table(shown)]
        parts.append("<h2>Clients</h2>")
        for connection in facts.connections:
            parts.append(_table(values.connection(connection, brief=False)))
    parts += ["<h2>Settings</h2>", _table(dict(facts.settings)), "<h2>Commands</h2>", _links()]
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><title>{title}</title>\n{body}\n</html>\n'


def _table(values_: Mapping[str, object]) -> str:
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>\n"
        for name, value in values_.items()
    )
    return f"<table>\n{rows}</table>"


class _Command(NamedTuple):
    aliases: tuple[str, ...]
    serving: Callable[[Facts, Pipeline], Answer] | None = None
    """The answer of a server that serves clients."""
    always: Callable[[Facts], Answer] | None = None
    """The answer of any server."""


def _connections(facts: Facts, *, brief: bool) -> list[Answer]:
    return [values.connection(connection, brief=brief) for connection in facts.connections]


def _reset_connections(facts: Facts, pipeline: Pipeline) -> Answer:
    facts.reset_connections()
    return {}


def _reset_server(facts: Facts, pipeline: Pipeline) -> Answer:
    facts.reset_server()
    return {}


def _dump(facts: Facts, pipeline: Pipeline) -> Answer:
    sets = values.expiries(pipeline) or []
    return {
        "expiry_time_to_session_ids": {str(wall_ms): ids for wall_ms, ids in sets},
        "session_id_to_ephemeral_paths": {
            str(session_id): paths for session_id, paths in values.ephemerals(pipeline).items()
        },
    }


def _watch_summary(facts: Facts, pipeline: Pipeline) -> Answer:
    watches = pipeline.watches
    return {
        "num_connections": watches.watchers,
        "num_paths": watches.paths,
        "num_total_watches": len(watches),
    }


def _watches(facts: Facts, pipeline: Pipeline) -> Answer:
    found = values.watches_by_session(pipeline)
    return {"session_id_to_watched_paths": {str(session): each for session, each in found.items()}}


_COMMANDS: dict[str, _Command] = {
    "configuration": _Command(
        ("conf", "config"), lambda facts, _: {_snake(k): _value(v) for k, v in facts.settings}
    ),
    "connection_stat_reset": _Command(("crst",), _reset_connections),
    "connections": _Command(
        ("cons",),
        lambda facts, _: {
            "connections": _connections(facts, brief=False),
            "secure_connections": [],
        },
    ),
    "dump": _Command(("dump",), _dump),
    "environment": _Command(("env", "envi"), always=lambda facts: {"zookeeper.version": VERSION}),
    "is_read_only": _Command(("isro",), lambda facts, _: {"read_only": False}),
    "leader": _Command(("lead",), lambda facts, pipeline: dict(pipeline.role())),
    "monitor": _Command(("mntr",), values.monitor),
    "ruok": _Command(("ruok",), lambda facts, _: {}),
    "server_stats": _Command(("srvr",), values.server_stats),
    "stat_reset": _Command(("srst",), _reset_server),
    "stats": _Command(
        ("stat",),
        lambda facts, pipeline: {
            **values.server_stats(facts, pipeline),
            "connections": _connections(facts, brief=True),
            "secure_connections": [],
        },
    ),
    "watch_summary": _Command(("wchs",), _watch_summary),
    "watches": _Command(("wchc",), _watches),
    "watches_by_path": _Command(
        ("wchp",), lambda facts, pipeline: {"path_to_session_ids": values.watches_by_path(pipeline)}
    ),
}
_NAMES = {
    name: primary for primary, command in _COMMANDS.items() for name in (primary, *command.aliases)
}


def _snake(name: str) -> str:
    """Turn ``maxClientCnxns`` into ``max_client_cnxns``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _value(text: str) -> object:
    return int(text) if text.lstrip("-").isdigit() else text


class Admin:
    """Listens for HTTP requests of operators."""

    def __init__(self, facts: Callable[[], Facts]) -> None:
        """``facts`` returns what operators can see at the moment."""
        self.facts = facts
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Listen; return the port; raises OSError."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: _Connection(self), host, port, reuse_port=reuse_port or None
        )
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()


class _Connection(asyncio.Protocol):
    """One request and its response."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._head = b""
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(REQUEST_S_MAX, transport.abort)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" in self._head or b"\n\n" in self._head:
            self._respond()
        elif len(self._head) > HEAD_BYTES_MAX:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.cancel()

    def _respond(self) -> None:
        words = self._head.split(b"\n", 1)[0].decode("latin-1").split()
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            response = Response("400 Bad Request", "text/plain", "This is no HTTP request.\n")
        else:
            response = respond(words[0], words[1], self._admin.facts())
        self._transport.write(response.encode())
        self._transport.close()
