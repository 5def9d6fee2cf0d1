"""A server on a real socket, and requests whose answers tests decide."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker_impl import config as configuration
from broker_impl.api import registry
from broker_impl.api.quotas.limits import ClientQuotas
from broker_impl.api.services import Services
from broker_impl.counts import Counts
from broker_impl.security.credentials import Credentials
from broker_impl.server import Server
from broker_impl.wire.messages.find_coordinator_request import FindCoordinatorRequest
from tests.broker_impl.server.requests import FIND_COORDINATOR, Open, World, answer


@pytest.fixture
def parked(monkeypatch: pytest.MonkeyPatch) -> dict[str, "asyncio.Future[Any]"]:
    """Futures of the requests whose key begins with ``park``; ``slow`` ones are coroutines."""
    futures: dict[str, asyncio.Future[Any]] = {}

    def handle(context: registry.RequestContext, request: FindCoordinatorRequest) -> Any:
        if request.key.startswith(("park", "slow")):
            future = futures[request.key] = asyncio.get_running_loop().create_future()
            return future if request.key.startswith("park") else wait(future)
        return answer(request.key)

    async def wait(future: "asyncio.Future[Any]") -> Any:
        return await future

    row = registry.Api(FIND_COORDINATOR, range(3), range(3), False, handle)
    monkeypatch.setitem(registry.APIS, FIND_COORDINATOR, row)
    return futures


@pytest.fixture
async def world() -> AsyncIterator[Open]:
    """A context manager that starts a server with the given settings."""
    worlds: list[World] = []

    @asynccontextmanager
    async def start(*, gate: bool = True, **settings: Any) -> AsyncIterator[World]:
        given = {name.replace("_", "."): str(value) for name, value in settings.items()}
        config = configuration.parse(
            {
                "broker.id": "1",
                "zookeeper.connect": "h:1",
                "listeners": "CLIENT://127.0.0.1:0,PRIVATE://127.0.0.1:0",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,PRIVATE:PLAINTEXT",
                "inter.broker.listener.name": "PRIVATE",
            }
            | given
        )
        fatal: list[BaseException] = []
        quotas = SimpleNamespace(
            limits=ClientQuotas(11, 1000), leading=SimpleNamespace(throttles=lambda _: False)
        )
        services = cast(Services, SimpleNamespace(config=config, quotas=quotas, counts=Counts()))
        credentials = Credentials(config, lambda: "nonce")
        server = Server(services, config, fatal.append, credentials)
        ports = [(await server.listen(endpoint)).port for endpoint in config.endpoints()]
        if gate:
            server.open_to_brokers()
            server.open_to_clients()
        worlds.append(World(server, ports, fatal))
        yield worlds[-1]

    yield start
    for item in worlds:
        await item.close()
