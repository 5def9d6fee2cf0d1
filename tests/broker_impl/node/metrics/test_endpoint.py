"""The HTTP listener of metrics, with a broker in the test's own loop."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from broker_impl.counts import Durations
from broker_impl.node.metrics import Source, endpoint, serving
from broker_impl.node.metrics.source import gauge
from tests.broker_impl.conftest import ClusterInLoop

LOCAL = "127.0.0.1:0"


async def ask(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Send bytes, and return the head and the body of the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    with suppress(ConnectionError):
        response = await reader.read()
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
    return head, body


async def source_of(cluster: ClusterInLoop) -> Source:
    running = await cluster.add(1)
    await cluster.ready()
    assert running.broker is not None
    broker = running.broker
    return Source(broker, broker.groups, Durations(), SimpleNamespace(idle_s=1.5))


async def test_a_broker_shows_its_state(cluster: ClusterInLoop) -> None:
    """The text can be parsed, and says that the broker is alone, idle and the controller."""
    source = await source_of(cluster)
    async with serving(source, LOCAL) as port:
        head, body = await ask(port, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
    assert f"Content-Length: {len(body)}".encode() in head
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }
    assert samples["kafka_controller_kafkacontroller_activecontrollercount",] == 1
    assert samples["kafka_server_app_info", source.broker.cluster_id, "1"] == 1
    assert samples["kafka_server_socketservermetrics_connection_count", "CLIENT"] == 0
    idle = "kafka_server_kafkarequesthandlerpool_requesthandleridle_seconds_total"
    assert samples[idle,] == 1.5


@pytest.mark.parametrize(
    ("request_line", "status", "has_body"),
    [
        (b"GET / HTTP/1.1", b"404 Not Found", True),
        (b"GET /metricsx HTTP/1.1", b"404 Not Found", True),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed", True),
        (b"HEAD /metrics HTTP/1.0", b"200 OK", False),
    ],
)
async def test_only_metrics_are_served(
    cluster: ClusterInLoop, request_line: bytes, status: bytes, has_body: bool
) -> None:
    """Other paths are not found, other methods not allowed, and HEAD has no body."""
    async with serving(await source_of(cluster), LOCAL) as port:
        head, body = await ask(port, request_line + b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + status)
    assert bool(body) is has_body


@pytest.mark.parametrize("request_bytes", [b"\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"x" * 10_000])
async def test_nonsense_closes_the_connection(cluster: ClusterInLoop, request_bytes: bytes) -> None:
    """A head that is empty or too long gets no response, and the next request gets one."""
    async with serving(await source_of(cluster), LOCAL) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request_bytes)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        head, _ = await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")


async def test_silent_clients_are_few_and_bounded(
    cluster: ClusterInLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that send nothing are disconnected in time; more than the limit are refused."""
    monkeypatch.setattr(endpoint, "_IN_TIME_S", 0.05)
    monkeypatch.setattr(endpoint, "_CLIENTS_MAX", 1)
    async with serving(await source_of(cluster), LOCAL) as port:
        silent, writer = await asyncio.open_connection("127.0.0.1", port)
        second, also = await asyncio.open_connection("127.0.0.1", port)
        for reader in (second, silent):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        also.close()
        monkeypatch.setattr(endpoint, "_IN_TIME_S", 10)
        head, _ = await ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")


def test_a_large_family_is_rendered_in_pieces() -> None:
    """All pieces together are the text that the library makes of the whole family."""
    family = gauge("g", "About\nit.", (((str(n),), n) for n in range(7)), ("label",))
    whole: Any = SimpleNamespace(collect=lambda: [family])
    found = list(endpoint.pieces(family, 3))
    assert [piece.count(b'{label="') for piece in found] == [3, 3, 1]
    assert b"".join(found) == generate_latest(whole)


async def test_other_work_runs_between_two_families(cluster: ClusterInLoop) -> None:
    """While a response is made, the loop runs other callbacks once for each family."""
    served = endpoint.Endpoint(await source_of(cluster))
    making = asyncio.create_task(served.text())
    turns = 0
    while not making.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= (await making).count(b"# TYPE") > 30
