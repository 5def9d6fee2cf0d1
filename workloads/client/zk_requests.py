"""Operations that are one request, or a read after ``sync``, and the end of a session.

Each takes the value of the invocation, and returns what the completion has in addition to it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from workloads.client.zk_session import (
    Check,
    Create,
    Delete,
    NotSent,
    Part,
    Rejected,
    SetData,
    Stat,
    Unknown,
)
from workloads.client.zk_site import Site

Value = dict[str, Any]
Handler = Callable[[Site, Value], Awaitable[Value]]


def stat_of(stat: Stat) -> dict[str, int]:
    """Return a Stat as histories have it."""
    return stat._asdict()


async def create(site: Site, value: Value) -> Value:
    """Create a znode; ``created`` is its path."""
    is_ephemeral = bool(value.get("ephemeral"))
    is_sequential = bool(value.get("sequential"))
    path = await site.create(
        value["path"], value["data"], ephemeral=is_ephemeral, sequential=is_sequential
    )
    return {"created": path}


async def delete(site: Site, value: Value) -> Value:
    """Delete a znode."""
    await site.delete(value["path"], value.get("version", -1))
    return {}


async def set_data(site: Site, value: Value) -> Value:
    """Set the data of a znode."""
    return {"stat": stat_of(await site.set(value["path"], value["data"], value.get("version", -1)))}


async def get(site: Site, value: Value) -> Value:
    """Read a znode, after ``sync`` if asked to; ``stat`` is ``None`` for one that is absent.

    A number as ``watch`` sets a watch, which is ``registered`` then, unless the session has one on
    the znode already.
    """
    path, number = value["path"], value.get("watch")
    synced = await _synced(site, value)
    watch = None if number is None else site.watch(path, number)
    try:
        data, stat = await site.get(path, watch)
        shown: Value = {"data": data, "stat": stat_of(stat)}
    except (Rejected, Unknown, NotSent) as error:
        if watch is not None and number is not None:
            site.unwatch(path, number)
        if str(error) != "no-node":
            raise
        shown = {"data": None, "stat": None}
        watch = None
    set_ = {} if watch is None else {"registered": number}
    return {**shown, **_still(site, synced), **set_}


async def children(site: Site, value: Value) -> Value:
    """List the children of a znode, after ``sync`` if asked to."""
    synced = await _synced(site, value)
    names, stat = await site.children(value["path"])
    return {"children": names, "stat": stat_of(stat), **_still(site, synced)}


async def _synced(site: Site, value: Value) -> int | None:
    return await site.sync(value["path"]) if value.get("sync") else None


def _still(site: Site, synced: int | None) -> Value:
    """A ``sync`` holds for reads of the same connection only."""
    return {} if synced is None else {"sync": synced == site.session.connections}


_PARTS: Mapping[str, Callable[..., Part]] = {
    "create": Create,
    "set": SetData,
    "delete": Delete,
    "check": Check,
}


async def multi(site: Site, value: Value) -> Value:
    """Execute several writes together; ``results`` has the Stat of each set, in order."""
    results = await site.multi([_PARTS[kind](*rest) for kind, *rest in value["parts"]])
    return {"results": [stat_of(each) if isinstance(each, Stat) else each for each in results]}


async def close(site: Site, value: Value) -> Value:
    """End the session, and with it its ephemeral znodes."""
    del value
    if not await site.session.close():
        site.has_written = True
        raise Unknown("the end of the session was not confirmed")
    return {}


async def abandon(site: Site, value: Value) -> Value:
    """Stop without ending the session. The outcome is unknown until the session has expired."""
    del value
    await site.session.abandon()
    site.has_written = True
    raise Unknown("crash")


async def intrude(site: Site, value: Value) -> Value:
    """Ask for the session of another client with a wrong password; ``granted`` says if it was."""
    return {"granted": await site.session.intrude(value["victim"])}


HANDLERS: Mapping[str, Handler] = {
    "create": create,
    "delete": delete,
    "set": set_data,
    "get": get,
    "children": children,
    "multi": multi,
    "close": close,
    "abandon": abandon,
    "intrude": intrude,
}
