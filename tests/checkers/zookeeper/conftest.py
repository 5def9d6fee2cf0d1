"""Histories of ZooKeeper's clients that are small enough to read."""

import itertools
from collections.abc import Sequence
from typing import Any

from checkers.facts import Fault
from checkers.kernels.found import Found
from checkers.zookeeper import calls
from checkers.zookeeper.calls import History
from model.op import Op


class Script:
    """Builds a history event by event; an event lasts a millisecond."""

    def __init__(self) -> None:
        self.events: list[Op] = []
        self._index = itertools.count()
        self._zxid = 0

    def invoke(self, process: int, f: str, **value: Any) -> Op:
        """Add an invocation."""
        return self._add(process, "invoke", f, value)

    def complete(
        self, invoked: Op, kind: str = "ok", *, error: str | None = None, **value: Any
    ) -> Op:
        """Complete an invocation. The zxid of the answer is the largest one that it names, unless
        it is given."""
        stat = value.get("stat") or {}
        self._zxid = max(self._zxid, stat.get("mzxid", 0))
        filled = {**invoked.value, "session": invoked.process, "zxid": self._zxid, **value}
        return self._add(invoked.process, kind, invoked.f, filled, error)

    def call(
        self,
        process: int,
        f: str,
        asked: dict[str, Any],
        answer: dict[str, Any] | None = None,
        kind: str = "ok",
        error: str | None = None,
    ) -> Op:
        """Add an invocation and its completion."""
        return self.complete(self.invoke(process, f, **asked), kind, error=error, **(answer or {}))

    def _add(
        self, process: int, kind: Any, f: str, value: dict[str, Any], error: str | None = None
    ) -> Op:
        index = next(self._index)
        op = Op(
            index=index,
            time_ns=index * 1_000_000,
            process=process,
            type=kind,
            f=f,
            value=value,
            error=error,
        )
        self.events.append(op)
        return op

    def history(self, faults: Sequence[Fault] = (), recovered: bool | None = True) -> History:
        """Return the calls of the history."""
        return calls.of_events(self.events, faults, recovered)


def stat(version: int, mzxid: int, czxid: int = 1, **more: int) -> dict[str, int]:
    """Return a Stat as histories have it."""
    given = {"czxid": czxid, "mzxid": mzxid, "pzxid": czxid, "version": version}
    return {**given, "cversion": 0, "owner": 0, **more}


def names(found: Sequence[Found]) -> list[str]:
    """Return the anomalies of findings."""
    return [f.anomaly for f in found]


def fault(from_ns: int = 0, to_ns: int | None = 1) -> Fault:
    """Return a fault that was healed."""
    return Fault(1, "kill", from_ns, to_ns, True, "killed")
