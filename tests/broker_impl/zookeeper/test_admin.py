"""Operators are answered over HTTP with the values of Apache ZooKeeper's admin server."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from broker_impl.zookeeper import admin
from broker_impl.zookeeper.admin import HEAD_BYTES_MAX, Admin
from tests.broker_impl.zookeeper.test_four_letter_words import Site


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def port(site: Site) -> AsyncIterator[int]:
    server = Admin(site.facts)
    yield await server.start("127.0.0.1", 0)
    await server.stop()


async def exchange(port: int, request: bytes, *, pieces: int = 1) -> tuple[str, str, str]:
    """Send a request in some pieces; return status line, head and body of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = -(-len(request) // pieces)
    for at in range(0, len(request), size):
        writer.write(request[at : at + size])
        await asyncio.sleep(0)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.decode().partition("\r\n\r\n")
    status, _, fields = head.partition("\r\n")
    return status, fields, body


async def get(port: int, path: str, *, pieces: int = 1) -> tuple[str, str, str]:
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    return await exchange(port, request, pieces=pieces)


async def test_a_command_is_answered_as_json(port: int, site: Site) -> None:
    """A command has its values, its first name, and an error that is null."""
    status, fields, body = await get(port, "/commands/srvr", pieces=7)
    assert status == "HTTP/1.1 200 OK"
    assert "Content-Type: application/json" in fields
    assert f"Content-Length: {len(body)}" in fields
    answer = json.loads(body)
    assert (answer["command"], answer["error"], answer["node_count"]) == ("server_stats", None, 6)
    stats = answer["server_stats"]
    assert (stats["server_state"], stats["last_processed_zxid"]) == ("standalone", 4)
    assert stats["packets_received"] == 12


async def test_pages(port: int) -> None:
    """The commands are listed as links, and the root is one page about the server."""
    _, fields, body = await get(port, "/commands")
    assert "text/html" in fields
    assert '<a href="/commands/watch_summary">watch_summary</a>' in body
    _, _, body = await get(port, "/?x=1")
    assert "<h1>ZooKeeper: standalone</h1>" in body
    assert "<th>znode_count</th><td>6</td>" in body
    assert "<th>remote_socket_address</th><td>127.0.0.1:1</td>" in body


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /nowhere HTTP/1.1\r\n\r\n", "404 Not Found"),
        (b"POST /commands/srst HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        (b"ruok\n\n", "400 Bad Request"),
        (b"\xff\xfe\r\n\r\n", "400 Bad Request"),
    ],
)
async def test_other_requests_are_refused(request_: bytes, status: str, port: int) -> None:
    """What is no GET of a page or a command gets an error, and nothing is reset."""
    answer, _, _ = await exchange(port, request_)
    assert answer == f"HTTP/1.1 {status}"


async def test_a_request_without_an_end_is_dropped(port: int) -> None:
    """A head that is too long ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n" + b"x" * HEAD_BYTES_MAX)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()


async def test_head_has_no_body(port: int) -> None:
    """HEAD is answered with the head alone."""
    status, _, body = await exchange(port, b"HEAD /commands/mntr HTTP/1.1\r\n\r\n")
    assert (status, body) == ("HTTP/1.1 200 OK", "")


@pytest.mark.parametrize("name", ["conf", "config", "configuration"])
def test_a_command_has_several_names(name: str, site: Site) -> None:
    """The names of Apache's admin server and the four-letter words are names of commands."""
    assert admin.run(name, site.facts()) == {
        "tick_time": 1000, "server_id": 0, "command": "configuration", "error": None
    }  # fmt: skip


def test_values_of_sessions_and_watches(site: Site) -> None:
    """Sessions, their nodes and their watches are listed by their numbers."""
    one, two = site.id(site.one), site.id(site.two)
    dump = admin.run("dump", site.facts())
    assert dump["expiry_time_to_session_ids"] == {"17345": [one, two]}
    assert dump["session_id_to_ephemeral_paths"] == {str(one): ["/a/e"]}
    watches = admin.run("wchc", site.facts())
    assert watches["session_id_to_watched_paths"] == {str(one): ["/a"], str(two): ["/a", "/q"]}
    by_path = admin.run("wchp", site.facts())
    assert by_path["path_to_session_ids"] == {"/a": [one, two], "/q": [two]}
    summary = admin.run("wchs", site.facts())
    assert [summary[f"num_{kind}"] for kind in ("connections", "paths", "total_watches")] == [
        2, 2, 4
    ]  # fmt: skip


def test_connections(site: Site) -> None:
    """stats lists connections in brief, connections with what their clients do."""
    facts = site.facts()
    brief = admin.run("stats", facts)["connections"]
    whole = admin.run("connections", facts)["connections"]
    assert isinstance(brief, list)
    assert isinstance(whole, list)
    assert brief[1] == whole[1], "a connection without a session"
    assert "session_id" not in brief[0]
    assert (whole[0]["last_operation"], whole[0]["session_timeout"]) == ("EXIS", 10_000)
    assert (whole[0]["last_zxid"], whole[0]["max_latency"]) == (5, 2)


def test_the_leader(site: Site) -> None:
    """A server that is alone has no leader; a member of an ensemble names it."""
    assert admin.run("lead", site.facts()) == {
        "error": "server is not initialized", "command": "leader"
    }  # fmt: skip
    role = {"is_leader": False, "leader_id": 3, "leader_ip": "zk-3"}
    site.world.pipeline.role = lambda: role
    assert admin.run("leader", site.facts()) == {**role, "command": "leader", "error": None}


def test_resets_and_unknown_commands(site: Site) -> None:
    """Figures can be reset, and a command of another name is unknown."""
    assert admin.run("srst", site.facts())["command"] == "stat_reset"
    assert admin.run("crst", site.facts())["error"] is None
    assert site.resets == ["server", "connections"]
    assert admin.run("nope", site.facts()) == {
        "command": "nope", "error": "Unknown command: nope"
    }  # fmt: skip


def test_without_a_leader(site: Site) -> None:
    """A server that serves no clients says so, in commands and on its page."""
    facts = site.facts(serves=False)
    answer = admin.run("mntr", facts)
    assert answer["error"] == "This ZooKeeper instance is not currently serving requests"
    assert admin.run("envi", facts)["zookeeper.version"] == "3.9.3-faultline"
    assert "<h1>ZooKeeper: not serving</h1>" in admin.page(facts)


def test_a_page_shows_text_as_text(site: Site) -> None:
    """A setting that looks like HTML is shown, not interpreted."""
    facts = site.facts()._replace(settings=[("membership", "<script>")])
    assert "<td>&lt;script&gt;</td>" in admin.page(facts)
