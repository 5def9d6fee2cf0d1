"""Connections of a server: the order of responses, failures of handlers, and malformed frames."""

import asyncio
import dataclasses
import struct
from pathlib import Path
from typing import Any

import pytest

from broker_impl.api import registry
from broker_impl.api.purgatory import Waiting
from broker_impl.errors import ErrorCode, StorageError
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import response_module
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.api_versions_request import encode as encode_api_versions
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from broker_impl.wire.messages.find_coordinator_response import FindCoordinatorResponse
from broker_impl.wire.types import TopicPartition
from harness.cluster.authority import Authority
from tests.broker_impl.server.requests import FIND_COORDINATOR, VERSIONS, Open, settle, until

TP = TopicPartition("t", 0)


async def test_answers_come_in_the_order_of_requests(world: Open, parked: Any) -> None:
    """A parked request keeps its place among the responses, while later requests are handled."""
    async with world() as w:
        client = await w.client()
        client.ask("park", 1)
        client.ask("now", 2)
        client.ask("park2", 3)
        await settle()
        assert set(parked) == {"park", "park2"}
        parked["park2"].set_result(FindCoordinatorResponse())
        parked["park"].set_result(FindCoordinatorResponse())
        assert [await client.answer() for _ in range(3)] == [1, 2, 3]


async def test_an_answer_does_not_wait_for_other_attempts(
    world: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parked request is answered before the next one that waits for its partition is tried.

    Each of its client's later requests gets its response after it.
    """
    waiting = Waiting()
    tried: list[tuple[str, int]] = []
    async with world() as w:

        def answered() -> int:
            durations = w.server.services.counts.requests.get(FIND_COORDINATOR)
            return 0 if durations is None else durations.count

        def handle(_: registry.RequestContext, request: FindCoordinatorRequest) -> Any:
            def attempt(expired: bool) -> FindCoordinatorResponse:
                tried.append((request.key, answered()))
                return FindCoordinatorResponse()

            return waiting.park([TP], attempt, 10)

        row = registry.Api(FIND_COORDINATOR, range(3), range(3), False, handle)
        monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
        clients = [await w.client(), await w.client()]
        clients[0].ask("first", 1)
        await settle()
        clients[1].ask("second", 2)
        clients[0].ask("third", 3)
        await until(lambda: len(waiting) == 3)
        waiting.notify(TP)
        assert [count for _, count in tried] == [0, 1, 2]
        assert [await clients[0].answer() for _ in range(2)] == [1, 3]
        assert await clients[1].answer() == 2


async def test_a_coroutine_holds_up_what_is_behind_it(world: Open, parked: Any) -> None:
    """A handler that is a coroutine blocks the next requests of its connection."""
    async with world() as w:
        client = await w.client()
        client.ask("slow1", 1)
        client.ask("slow2", 2)
        await settle()
        assert set(parked) == {"slow1"}
        parked["slow1"].set_result(FindCoordinatorResponse())
        await settle()
        assert set(parked) == {"slow1", "slow2"}
        parked["slow2"].set_result(FindCoordinatorResponse())
        assert [await client.answer(), await client.answer()] == [1, 2]


async def test_a_coroutine_may_park_its_answer(world: Open, parked: Any) -> None:
    """A coroutine may return a future, which no longer blocks later requests.

    Its response keeps its place.
    """
    async with world() as w:
        client = await w.client()
        client.ask("slow1", 1)
        client.ask("slow2", 2)
        await settle()
        later = asyncio.get_running_loop().create_future()
        parked["slow1"].set_result(later)
        await settle()
        assert set(parked) == {"slow1", "slow2"}
        parked["slow2"].set_result(FindCoordinatorResponse())
        await settle()
        later.set_result(FindCoordinatorResponse())
        assert [await client.answer(), await client.answer()] == [1, 2]


@pytest.mark.parametrize(
    "rubbish",
    [
        struct.pack(">i", 2**31 - 1) + b"x" * 100,
        struct.pack(">i", -5),
        struct.pack(">i", 3) + b"abc",
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 4, 4, 1, -1),
        struct.pack(">ihhih", 10, 10, 77, 1, -1),
        struct.pack(">ihhihhh", 14, 10, 1, 1, -1, 30000, 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
    ids=["huge", "negative", "short", "unknown", "private", "version", "length", "http"],
)
async def test_garbage_ends_its_connection_only(
    world: Open, parked: Any, rubbish: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes that are not a request close their connection with a logged reason; others continue."""
    async with world() as w:
        good, bad = await w.client(), await w.client()
        bad.writer.write(rubbish)
        assert await bad.is_closed()
        assert " closed: " in caplog.text
        good.ask("now", 7)
        assert await good.answer() == 7
        assert not w.fatal


async def test_too_new_api_versions_are_answered_in_v0(world: Open) -> None:
    """KIP-511: an unknown version of ApiVersions gets error 35 in v0, with the known versions."""
    async with world() as w:
        client = await w.client()
        client.send(VERSIONS, 9, b"\0")
        _, body = decode_response(await client.frame(), VERSIONS, 0)
        response = response_module(VERSIONS).decode(body, 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        ranges = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        assert ranges[VERSIONS] == (0, 3)
        assert ranges[0] == (0, 9)
        assert not ranges.keys() & {4, 5, 6, 7}, "private APIs are no client's business"


async def test_a_client_must_have_a_proper_name(world: Open) -> None:
    """KIP-511: ApiVersions v3 with a malformed software name is INVALID_REQUEST."""
    async with world() as w:
        client = await w.client()
        request = ApiVersionsRequest(client_software_name="-", client_software_version="1")
        header = RequestHeader(VERSIONS, 3, 1, None)
        client.writer.write(b"".join(encode_request(header, encode_api_versions(request, 3))))
        _, body = decode_response(await client.frame(), VERSIONS, 3)
        response = response_module(VERSIONS).decode(body, 3)
        assert response.error_code == ErrorCode.INVALID_REQUEST


async def test_a_handler_may_hang_up(world: Open, parked: Any) -> None:
    """A handler may close the connection, which is the only way to report an error to acks=0."""
    async with world() as w:
        client = await w.client()
        client.ask("hang up", 1)
        assert await client.is_closed()


async def test_a_bug_in_a_handler_ends_one_connection(world: Open, parked: Any) -> None:
    """An unexpected exception in a handler closes its connection only, with a log record."""
    async with world() as w:
        bad, good = await w.client(), await w.client()
        bad.ask("bug", 1)
        assert await bad.is_closed()
        good.ask("now", 2)
        assert await good.answer() == 2
        assert not w.fatal


async def test_a_storage_failure_ends_the_broker(world: Open, parked: Any) -> None:
    """A storage error in a handler ends the broker."""
    async with world() as w:
        client = await w.client()
        client.ask("storage", 1)
        await settle()
        assert [str(error) for error in w.fatal] == ["no space left"]


async def test_a_lost_connection_cancels_its_parked_requests(world: Open, parked: Any) -> None:
    """A lost connection cancels its parked requests."""
    async with world() as w:
        client = await w.client()
        client.ask("park", 1)
        await settle()
        client.writer.transport.abort()
        await settle()
        assert parked["park"].cancelled()
        assert w.server.bounds.request_bytes == 0


async def test_a_fetch_holds_up_what_is_behind_it(
    world: Open, parked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API that blocks its connection, such as Fetch, parks one request per connection."""
    row = dataclasses.replace(registry.APIS[FIND_COORDINATOR], holds_line=True)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    async with world() as w:
        client = await w.client()
        for number in (1, 2):
            client.ask(f"park{number}", number)
        await settle()
        assert set(parked) == {"park1"}
        parked["park1"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 1
        await settle()
        assert set(parked) == {"park1", "park2"}
        parked["park2"].set_result(FindCoordinatorResponse())
        assert await client.answer() == 2


@pytest.mark.parametrize(("error", "fatal"), [(StorageError("full"), 1), (KeyError("bug"), 0)])
@pytest.mark.parametrize("kind", ["park", "slow"])
async def test_late_failures_are_treated_like_early_ones(
    world: Open, parked: Any, kind: str, error: Exception, fatal: int
) -> None:
    """A parked or slow request that fails closes its connection, and may end the broker.

    Without that, a client would wait for an answer of a broker that goes on without one of its
    data directories (KIP-112).
    """
    async with world() as w:
        client = await w.client()
        client.ask(kind, 1)
        await settle()
        parked[kind].set_exception(error)
        await settle()
        assert len(w.fatal) == fatal
        assert await client.is_closed()


async def test_a_connection_with_tls_may_be_closed_again(world: Open, tmp_path: Path) -> None:
    """asyncio's transport with TLS forgets its protocol when it is closed a second time."""
    authority = Authority(tmp_path)
    tls = {
        "listener_security_protocol_map": "CLIENT:SSL,PRIVATE:PLAINTEXT",
        "ssl_keystore_type": "PEM",
        "ssl_keystore_location": authority.issue("broker"),
    }
    async with world(**tls) as w:
        context = authority.client_context()
        reader, writer = await asyncio.open_connection("127.0.0.1", w.ports[0], ssl=context)
        await until(lambda: bool(w.server._connections))
        [connection] = w.server._connections
        for _ in range(3):
            connection.close()
        assert await reader.read() == b""
        writer.close()
