"""Recipes: operations of several requests, such as a counter, a lock or a queue.

They follow the recipes of ZooKeeper's documentation. Each takes the value of the invocation, and
returns what the completion has in addition to it. An operation that has given up after it had
undone what it began has certainly failed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from workloads.client.zk_requests import Handler, Value, get, stat_of
from workloads.client.zk_session import Check, Create, Delete, Rejected, SetData, Stat, Unknown
from workloads.client.zk_site import Site, Withdrawn

_DIGITS = 10
"""The length of the number in the name of a sequential znode."""


async def add(site: Site, value: Value) -> Value:
    """Add a number to a counter: read it, and set it if its version is still the same.

    It is repeated when the server has answered that the version was another one.
    """
    path = value["path"]
    while True:
        data, stat = await site.get(path)
        total = int(data or "0") + value["delta"]
        site.attempt = {"total": total, "version": stat.version}
        try:
            after = await site.set(path, str(total), stat.version)
        except Rejected as error:
            if str(error) != "bad-version":
                raise
            continue
        return {"total": total, "stat": stat_of(after)}


async def acquire(site: Site, value: Value) -> Value:
    """Acquire a lock: wait until no znode of it is before the client's own.

    ``token`` is the ``czxid`` of that znode, which grows with each owner. Only the znode right
    before the own one is watched.
    """
    lock = value["path"]
    node = await site.create(f"{lock}/n-", "", ephemeral=True, sequential=True)
    site.attempt = {"node": node}

    async def next_before() -> str | None:
        names, _ = await site.children(lock)
        mine = node.rpartition("/")[2]
        if mine not in names:
            raise Unknown("the znode of the lock is gone")
        before = [name for name in names if _number(name) < _number(mine)]
        return f"{lock}/{max(before, key=_number)}" if before else None

    await _until_none(site, next_before, node)
    stat = await site.exists(node)
    if stat is None:
        raise Unknown("the znode of the lock is gone")
    return {"node": node, "token": stat.czxid}


def _number(name: str) -> int:
    return int(name[-_DIGITS:])


async def _until_none(site: Site, blocker: Callable[[], Awaitable[str | None]], mine: str) -> None:
    """Wait until no znode is in the way; after ``wait_s``, delete the own one and give up."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + site.wait_s
    while (path := await blocker()) is not None:
        changed = asyncio.Event()
        if await site.exists(path, lambda event: changed.set()) is None:  # noqa: B023 - called soon
            continue
        try:
            async with asyncio.timeout_at(until_s):
                await changed.wait()
        except TimeoutError:
            await site.delete(mine)
            raise Withdrawn("timeout") from None


async def release(site: Site, value: Value) -> Value:
    """Release a lock or an office: delete its znode."""
    await site.delete(value["node"])
    return {}


async def guard(site: Site, value: Value) -> Value:
    """Write on condition that the znode of the own lock exists, with its fencing token as data."""
    results = await site.multi(
        [Check(value["node"], 0), SetData(value["resource"], str(value["token"]))]
    )
    return {"stat": _written(results)}


def _written(results: list[Stat | str | None]) -> dict[str, int]:
    (stat,) = [each for each in results if isinstance(each, Stat)]
    return stat_of(stat)


async def elect(site: Site, value: Value) -> Value:
    """Become the leader: create the ephemeral znode of the office and increment the epoch, in one
    multi. Raises that the office is taken if another client was faster."""
    path, epoch_path = value["path"], value["epoch_path"]
    _, before = await site.get(epoch_path)
    site.attempt = {"epoch": before.version + 1}
    results = await site.multi(
        [
            Create(path, str(before.version + 1), True),
            SetData(epoch_path, str(before.version + 1), before.version),
        ]
    )
    return {"epoch": _written(results)["version"], "stat": _written(results), "node": path}


async def lead(site: Site, value: Value) -> Value:
    """Write as the leader, on condition that the epoch is still the own one."""
    results = await site.multi(
        [
            Check(value["epoch_path"], value["epoch"]),
            SetData(value["resource"], str(value["epoch"])),
        ]
    )
    return {"stat": _written(results)}


async def resign(site: Site, value: Value) -> Value:
    """Leave the office, on condition that the epoch is still the own one."""
    await site.multi([Check(value["epoch_path"], value["epoch"]), Delete(value["node"])])
    return {}


async def enqueue(site: Site, value: Value) -> Value:
    """Append an element to a queue: a sequential znode."""
    path = await site.create(f"{value['path']}/n-", value["data"], sequential=True)
    return {"created": path}


async def dequeue(site: Site, value: Value) -> Value:
    """Take the first element of a queue: the client whose deletion succeeds has it.

    ``deleted`` is ``None`` if the queue was empty.
    """
    queue = value["path"]
    while True:
        names, _ = await site.children(queue)
        if not names:
            return {"deleted": None, "data": None}
        for name in sorted(names, key=_number):
            path = f"{queue}/{name}"
            try:
                data, _ = await site.get(path)
                site.attempt = {"deleted": path, "data": data}
                await site.delete(path)
            except Rejected as error:
                if str(error) != "no-node":
                    raise
                site.attempt = {}
                continue
            return {"deleted": path, "data": data}


async def _ensure(site: Site, path: str) -> None:
    """Create a znode unless another client has."""
    try:
        await site.create(path, "")
    except Rejected as error:
        if str(error) != "node-exists":
            raise


async def enter(site: Site, value: Value) -> Value:
    """Enter a barrier: create an ephemeral znode, and wait until as many are there as it needs."""
    barrier, node = value["path"], f"{value['path']}/{value['member']}"
    site.attempt = {"node": node}
    await _ensure(site, barrier)
    await site.create(node, "", ephemeral=True)
    ready = f"{barrier}-ready"
    loop = asyncio.get_running_loop()
    until_s = loop.time() + site.wait_s
    while True:
        changed = asyncio.Event()
        if await site.exists(ready, lambda event: changed.set()) is not None:  # noqa: B023
            break
        names, _ = await site.children(barrier)
        if len(names) >= value["size"]:
            await _ensure(site, ready)
            break
        try:
            async with asyncio.timeout_at(until_s):
                await changed.wait()
        except TimeoutError:
            await site.delete(node)
            raise Withdrawn("timeout") from None
    return {"node": node}


HANDLERS: Mapping[str, Handler] = {
    "add": add,
    "read": get,
    "acquire": acquire,
    "release": release,
    "guard": guard,
    "elect": elect,
    "lead": lead,
    "resign": resign,
    "enqueue": enqueue,
    "dequeue": dequeue,
    "enter": enter,
}
