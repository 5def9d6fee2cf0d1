"""A client of a real ZooKeeper server whose next requests a test can replace, one by one."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
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
