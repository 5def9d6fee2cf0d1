"""The container engine of this machine, and calls to it from the event loop.

The SDK blocks. Each call runs in a thread of a small separate pool, so that calls which wait for a
busy engine do not occupy other threads; it has a time-out, so that an engine that hangs causes an
error. The SDK is imported only where it is needed, because most commands need no engine.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from harness.cluster.node import ClusterError

if TYPE_CHECKING:
    from docker import DockerClient

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

DEFAULT = "unix:///var/run/docker.sock"
CONNECT_TIMEOUT_S = 10
CALL_TIMEOUT_S = 30
"""For one call; the longest starts a container with its ports."""
THREADS = 6
CONFLICT = 409
"""The engine's answer when a container is not in the state that a call requires."""


class EngineError(ClusterError):
    """The engine is missing, does not answer, or refused; the message says which and why."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """``status`` is that of the engine's HTTP answer, if it has answered."""
        super().__init__(message)
        self.status = status


def connect(user: str = "the target containers") -> "DockerClient":
    """Connect to the engine of this machine; blocks. :class:`EngineError` if there is none.

    ``user`` is what the error says needs an engine.
    """
    where = os.environ.get("DOCKER_HOST") or DEFAULT
    if not where.startswith(("unix://", "http+unix://")):
        raise EngineError(
            f"DOCKER_HOST is {where}, so ports would be published on another machine;"
            f" {user} needs a container engine on this machine"
        )
    import docker
    from docker.errors import DockerException

    try:
        _knock(where.partition("://")[2])
        client = docker.from_env(timeout=CONNECT_TIMEOUT_S)
    except (DockerException, OSError) as error:
        raise EngineError(
            f"no container engine answers at {where} ({_innermost(error)});"
            f" {user} needs one (Docker 20.10 or newer)"
        ) from error
    client.api.timeout = CALL_TIMEOUT_S
    return client


def _knock(path: str) -> None:
    """Raise :class:`OSError` if no engine listens there; the SDK would leave its socket open."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(CONNECT_TIMEOUT_S)
        connection.connect(path)


def refusal() -> str | None:
    """Why no containers can run on this machine; ``None`` if they can."""
    try:
        connect().close()
    except EngineError as error:
        return str(error)
    return None


class Engine:
    """Calls an engine without blocking the event loop."""

    def __init__(self, client: "DockerClient") -> None:
        self.client = client
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="engine")
        self._under_way: set[asyncio.Future[Any]] = set()

    async def call(
        self,
        function: Callable[Arguments, Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        """Run a blocking call and return its result; raise :class:`EngineError` if it fails.

        A call whose caller is cancelled still runs to its end: see :meth:`settle`.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(
            self._threads, lambda: _call_engine(function, *args, **kwargs)
        )
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        return await asyncio.shield(future)

    async def settle(self) -> None:
        """Wait for all calls in progress, even if they fail: they may create objects."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.client.close()


def _call_engine(
    function: Callable[Arguments, Answer], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Answer:
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException

    try:
        return function(*args, **kwargs)
    except APIError as error:
        raise EngineError(
            f"the container engine: {error.explanation or error}", error.status_code
        ) from error
    except (DockerException, RequestException, OSError) as error:
        raise EngineError(f"the container engine: {type(error).__name__}: {error}") from error


def _innermost(error: BaseException) -> str:
    """The original cause of an error, in the operating system's words if possible."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return getattr(error, "strerror", None) or str(error)
