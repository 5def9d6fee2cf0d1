"""Connections to a listener with SASL: what is answered before and after the authentication."""

import asyncio
import struct
from typing import Any

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.wire.framing import RequestHeader, decode_response, encode_request
from broker_impl.wire.messages import request_module, response_module
from broker_impl.wire.messages.api_versions_request import ApiVersionsRequest
from broker_impl.wire.messages.sasl_authenticate_request import SaslAuthenticateRequest
from broker_impl.wire.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.broker_impl.server.requests import FIND_COORDINATOR, Client, Open, large_request

HANDSHAKE, AUTHENTICATE, API_VERSIONS = 17, 36, 18
VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SETTINGS = {
    "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,PRIVATE:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.client.plain.sasl.jaas.config": f"{PLAIN} user_alice=secret;",
    "connection.failed.authentication.delay.ms": "0",
}
RIGHT, WRONG = b"\0alice\0secret", b"\0alice\0wrong"


async def ask(client: Client, key: int, version: int, message: Any) -> Any:
    body = request_module(key).encode(message, version)
    client.writer.write(b"".join(encode_request(RequestHeader(key, version, 1, "test"), body)))
    _, rest = decode_response(await client.frame(), key, version)
    return response_module(key).decode(rest, version)


async def handshake(client: Client, mechanism: str = "PLAIN") -> Any:
    return await ask(client, HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism))


async def token(client: Client, token: bytes) -> Any:
    return await ask(client, AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token))


async def test_an_authenticated_client_is_served(world: Open, parked: Any) -> None:
    """After versions, handshake and token, requests are served and may be large."""
    async with world(**SETTINGS) as w:
        client = await w.client()
        versions = await ask(client, API_VERSIONS, 3, VERSIONS)
        assert {HANDSHAKE, AUTHENTICATE} <= {row.api_key for row in versions.api_keys}
        chosen = await handshake(client)
        assert (chosen.error_code, chosen.mechanisms) == (0, ["PLAIN"])
        assert (await token(client, RIGHT)).error_code == 0
        client.ask("now", 7)
        assert await client.answer() == 7
        client.writer.write(large_request(1_000_000))
        await client.frame()
        refused = await token(client, RIGHT)
        assert refused.error_code == ErrorCode.ILLEGAL_SASL_STATE
        client.ask("now", 8)
        assert await client.answer() == 8


@pytest.mark.parametrize("key", [FIND_COORDINATOR, AUTHENTICATE, 0, 3])
async def test_a_client_that_is_not_authenticated_is_not_served(
    world: Open, parked: Any, key: int
) -> None:
    """Any other first request closes the connection without a response; no handler runs."""
    async with world(**SETTINGS) as w:
        client = await w.client()
        if key == FIND_COORDINATOR:
            client.ask("park", 1)
        else:
            client.send(key, 1)
        assert await client.is_closed()
        assert not parked


async def test_requests_behind_a_token_wait_for_its_result(world: Open, parked: Any) -> None:
    """A request that a client sends before the response to its wrong token is never handled."""
    async with world(**SETTINGS) as w:
        for secret, is_served in ((WRONG, False), (RIGHT, True)):
            client = await w.client()
            await handshake(client)
            body = request_module(AUTHENTICATE).encode(SaslAuthenticateRequest(secret), 2)
            header = RequestHeader(AUTHENTICATE, 2, 1, "test")
            client.writer.write(b"".join(encode_request(header, body)))
            client.ask("park" if not is_served else "now", 2)
            await client.frame()
            if is_served:
                assert await client.answer() == 2
            else:
                assert await client.is_closed()
                assert not parked


async def test_a_refused_client_is_answered_and_closed(world: Open) -> None:
    """A wrong password and a mechanism that is not enabled are answered; then the broker closes."""
    async with world(**SETTINGS) as w:
        client = await w.client()
        await handshake(client)
        answer = await token(client, WRONG)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "secret" not in answer.error_message
        assert await client.is_closed()
        client = await w.client()
        answer = await handshake(client, "SCRAM-SHA-256")
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == ["PLAIN"]
        assert await client.is_closed()


async def test_a_refusal_is_delayed(world: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The response to a wrong password, and only that, waits for the configured delay."""
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    async with world(**SETTINGS | {"connection.failed.authentication.delay.ms": "700"}) as w:
        right, wrong = await w.client(), await w.client()
        await handshake(right)
        await handshake(wrong)
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "sleep", sleep)
            assert (await token(right, RIGHT)).error_code == 0
            assert delays == []
            assert (await token(wrong, WRONG)).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert delays == [0.7]


async def test_frames_are_small_before_the_authentication(world: Open) -> None:
    """A larger frame than sasl.server.max.receive.size closes a connection, until it is ready."""
    async with world(**SETTINGS | {"sasl.server.max.receive.size": "1000"}) as w:
        client = await w.client()
        client.writer.write(struct.pack(">i", 1001))
        assert await client.is_closed()
        client = await w.client()
        await handshake(client)
        client.writer.write(struct.pack(">i", 1001))
        assert await client.is_closed()
        client = await w.client()
        await handshake(client)
        await token(client, RIGHT)
        client.writer.write(large_request(2000))
        assert len(await client.frame()) > 100


async def test_versions_of_a_future_release(world: Open) -> None:
    """ApiVersions of an unknown version is answered in v0, and the client asks again (KIP-511)."""
    async with world(**SETTINGS) as w:
        client = await w.client()
        client.send(API_VERSIONS, 99, b"\0")
        _, body = decode_response(await client.frame(), API_VERSIONS, 0)
        answer = response_module(API_VERSIONS).decode(body, 0)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        await ask(client, API_VERSIONS, 3, VERSIONS)
        assert (await handshake(client)).error_code == 0


async def test_a_plaintext_listener_has_no_handshake(world: Open, parked: Any) -> None:
    """A listener without SASL answers a handshake with an error, and serves the client."""
    async with world() as w:
        client = await w.client()
        assert (await handshake(client)).error_code == ErrorCode.ILLEGAL_SASL_STATE
        client.ask("now", 3)
        assert await client.answer() == 3


async def raw_token(client: Client, token: bytes) -> None:
    """Send a token without a request header, as clients do after SaslHandshake v0."""
    client.writer.write(struct.pack(">i", len(token)) + token)


async def old_handshake(client: Client, mechanism: str = "PLAIN") -> Any:
    return await ask(client, HANDSHAKE, 0, SaslHandshakeRequest(mechanism=mechanism))


async def test_a_client_without_sasl_authenticate(world: Open, parked: Any) -> None:
    """After SaslHandshake v0 the token and its answer have no headers; then requests follow."""
    async with world(**SETTINGS) as w:
        client = await w.client()
        assert (await old_handshake(client)).error_code == 0
        await raw_token(client, RIGHT)
        client.ask("now", 7)
        assert await client.frame() == b""
        assert await client.answer() == 7


async def test_a_wrong_token_without_a_header_has_no_answer(world: Open, parked: Any) -> None:
    """A wrong password, and a request in place of a token, close the connection."""
    async with world(**SETTINGS) as w:
        for secret in (WRONG, b"", b"\0", RIGHT + b"\0"):
            client = await w.client()
            await old_handshake(client)
            await raw_token(client, secret)
            client.ask("park", 1)
            assert await client.is_closed()
        client = await w.client()
        await old_handshake(client)
        client.ask("park", 1)
        assert await client.is_closed()
        assert not parked
