"""Recipes: operations of several requests, such as a counter, a lock or a queue.

They follow the recipes of ZooKeeper's documentation. Each takes the value of the invocation, and
returns what the completion has in addition to it.
"""

from collections.abc import Mapping

from workloads.client.zk_requests import Handler, Value, get, stat_of
from workloads.client.zk_session import Rejected
from workloads.client.zk_site import Site


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


HANDLERS: Mapping[str, Handler] = {
    "add": add,
    "read": get,
}
