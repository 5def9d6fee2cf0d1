"""The client of ZooKeeper's workloads: operations in, outcomes out; one session for one process.

Doubt is the default. An operation has failed only if the server's answer says that its write was
not executed, if it wrote nothing, or if it was certainly not sent. A lost connection, an expired
session and a time-out while a write is open leave its outcome unknown, and nothing is ever sent a
second time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from model.op import Op, OpType
from workloads.client import zk_recipes, zk_requests
from workloads.client.zk_requests import Handler
from workloads.client.zk_session import NotSent, Rejected, Session, Unknown
from workloads.client.zk_site import Site, Withdrawn

HANDLERS: Mapping[str, Handler] = {**zk_requests.HANDLERS, **zk_recipes.HANDLERS}
"""What the client can do, by the name of the operation."""


class ZooKeeperClient:
    """A process of a workload."""

    def __init__(
        self, session: Session, parents: Sequence[str], *, patience_s: float, wait_s: float
    ) -> None:
        """``parents`` are znodes that must exist, each after the one that it is below of."""
        self._site = Site(session, patience_s=patience_s, wait_s=wait_s)
        self._session = session
        self._parents = parents
        self._has_closed = False

    @property
    def alive(self) -> bool:
        """False once the session has ended."""
        return not self._session.has_ended

    async def open(self) -> None:
        """Start the session, and create the parents that are missing."""
        await self._session.open()
        for path in self._parents:
            if await self._site.exists(path) is None:
                try:
                    await self._site.create(path, "")
                except Rejected as error:
                    if str(error) != "node-exists":
                        raise

    async def invoke(self, op: Op) -> Op:
        """Perform the operation and return it with its outcome."""
        site = self._site
        site.begin()
        try:
            result = await HANDLERS[op.f](site, op.value)
        except Withdrawn as reason:
            return self._completed(op, "fail", {}, str(reason))
        except (Rejected, NotSent, Unknown) as reason:
            kind: OpType = "info" if site.has_written else "fail"
            return self._completed(op, kind, site.attempt, str(reason))
        return self._completed(op, "ok", result, None)

    def _completed(self, op: Op, kind: OpType, result: Mapping[str, Any], error: str | None) -> Op:
        events, self._site.events = self._site.events, []
        value = {
            **op.value,
            **result,
            "session": self._session.id,
            "zxid": self._session.zxid,
            "connection": self._session.connections,
        }
        if events:
            value["events"] = events
        if self._session.unasked:
            value["unasked"] = [list(event) for event in self._session.unasked]
            self._session.unasked.clear()
        if self._session.has_expired:
            value["expired_ms"] = self._session.timeout_ms
        return msgspec.structs.replace(op, type=kind, value=value, error=error)

    async def close(self) -> None:
        """End the session, unless it has ended."""
        if not self._session.has_ended:
            await self._session.close()
