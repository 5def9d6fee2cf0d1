"""Clients of a real ZooKeeper server whose next requests a test can replace, one by one."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.errors import ConnectionLoss, ZooKeeperError

REQUESTS = {
    "get", "children", "exists", "create", "create2", "ensure_path", "set", "delete", "multi",
}  # fmt: skip

Request = Callable[[], Awaitable[Any]]
Step = Callable[[Request], Awaitable[Any]]


async def sent(request: Request) -> Any:
    """Send the request as it is."""
    return await request()


async def lost(request: Request) -> Any:
    """Lose the connection before the request takes effect."""
    raise ConnectionLoss("before")


async def answer_lost(request: Request) -> Any:
    """Lose the connection after the request took effect."""
    await request()
    raise ConnectionLoss("after")


def refused(error: ZooKeeperError) -> Step:
    """Fail the request with this error; the server does not receive it."""

    async def step(request: Request) -> Any:
        raise error

    return step


def preceded(action: Callable[[], Awaitable[Any]]) -> Step:
    """Run the action, and send the request after it."""

    async def step(request: Request) -> Any:
        await action()
        return await request()

    return step


class SteppedZooKeeper:
    """A client; each of ``steps`` handles one of its next requests, later ones are sent."""

    def __init__(self, zk: ZooKeeper, steps: Iterable[Step] = ()) -> None:
        self._zk = zk
        self.steps = deque(steps)
        self.asked = 0
        """The number of requests so far."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._zk, name)
        return self._stepped(method) if name in REQUESTS else method

    def _stepped(self, method: Any) -> Any:
        async def ask(*arguments: Any, **named: Any) -> Any:
            self.asked += 1
            step = self.steps.popleft() if self.steps else sent
            return await step(lambda: method(*arguments, **named))

        return ask


class SteppedWrites:
    """A client; each of ``steps`` handles one of its next writes of a znode in a multi."""

    def __init__(self, path: str, steps: Iterable[Step] = ()) -> None:
        self._path = path
        self._zk: ZooKeeper
        self.steps = deque(steps)
        self.written = 0
        """The number of writes so far."""

    def around(self, zk: ZooKeeper) -> "SteppedWrites":
        """Send the requests through this client."""
        self._zk = zk
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._zk, name)

    async def multi(self, ops: Sequence[Any]) -> Any:
        if all(op.path != self._path for op in ops):
            return await self._zk.multi(ops)
        self.written += 1
        step = self.steps.popleft() if self.steps else sent
        return await step(lambda: self._zk.multi(ops))


class LaggingZooKeeper(SteppedWrites):
    """A client that is connected to a server without its last write, once its answer was lost.

    The server has applied the write once it answers another one, or a sync if there is no new
    leader of the ensemble (``syncs``; ZOOKEEPER-1675).
    """

    def __init__(self, path: str, *, syncs: bool) -> None:
        super().__init__(path)
        self._syncs = syncs
        self._outdated: Any = None

    async def get(self, path: str, *watch: Any) -> Any:
        if path == self._path and self._outdated is not None:
            return self._outdated
        return await self._zk.get(path, *watch)

    async def sync(self, path: str) -> None:
        await self._zk.sync(path)
        if self._syncs:
            self._outdated = None

    async def multi(self, ops: Sequence[Any]) -> Any:
        self._outdated = None
        return await super().multi(ops)

    async def answer_lost(self, request: Request) -> Any:
        """The step that loses the connection after the write took effect."""
        before = await self._zk.get(self._path)
        await request()
        self._outdated = before
        raise ConnectionLoss("after")
