"""The counters of a run in progress."""

import asyncio
from typing import Any

from harness.engine.progress import Tally
from model.op import Op


def test_tally() -> None:
    """Records count when acknowledged or read; a fault is active from apply to heal."""
    tally = Tally()

    def see(process: int, kind: Any, f: str, value: Any) -> None:
        tally(Op(index=0, time_ns=0, process=process, type=kind, f=f, value=value))

    see(0, "invoke", "send", [["send", "b-0", 1], ["send", "b-0", 2]])
    see(1, "invoke", "send", [["send", "a-0", 1]])
    see(0, "info", "send", [["send", "b-0", [0, 1]], ["send", "b-0", 2]])
    see(2, "ok", "poll", [["poll", {"b-0": [[0, 1]], "a-0": [[0, 1], [1, 2]]}]])
    see(3, "info", "poll", [["poll"]])
    see(4, "info", "crash", None)
    see(-1, "invoke", "kill", {"id": 7, "phase": "apply"})
    see(-1, "info", "kill", {"id": 7, "phase": "apply"})
    assert (tally.ops, tally.acked, tally.read, tally.info) == (4, 1, 3, 3)
    assert list(tally.keys) == ["b-0", "a-0"]
    assert tally.active == {7: "kill"}
    see(-1, "info", "kill", {"id": 7, "phase": "heal"})
    assert (tally.active, tally.faults) == ({}, 1)


async def test_beginnings_are_told() -> None:
    """A client's invocation wakes each task that waits for its operation, once."""
    tally = Tally()
    waiting = [asyncio.ensure_future(tally.beginning("commit")) for _ in range(2)]
    given_up, other = (asyncio.ensure_future(tally.beginning(f)) for f in ("commit", "leave"))
    await asyncio.sleep(0)
    given_up.cancel()
    for process, kind, f in ((-1, "invoke", "commit"), (0, "ok", "commit"), (0, "invoke", "poll")):
        tally(Op(index=0, time_ns=0, process=process, type=kind, f=f, value=_VALUES[f]))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
    tally(Op(index=0, time_ns=0, process=0, type="invoke", f="commit", value=_VALUES["commit"]))
    await asyncio.gather(*waiting)
    assert not other.done()
    other.cancel()


_VALUES: dict[str, Any] = {"commit": [["commit", "g", {"a-0": 1}, "sync"]], "poll": [["poll"]]}


def test_transactions_are_tallied() -> None:
    """Sends of a transaction count if it was committed, its polls whatever the result."""
    tally = Tally()
    asked = [["send", "b-0", 1], ["poll"], ["delay", None, 5], ["send", "c-0", 1]]
    told = [["send", "b-0", [4, 1]], ["poll", {"a-0": [[0, 1]]}], asked[2], ["send", "c-0", 1]]
    for kind, value in (("invoke", asked), ("fail", told), ("invoke", asked), ("ok", told)):
        tally(Op(index=0, time_ns=0, process=0, type=kind, f="txn", value=value))  # type: ignore[arg-type]
    assert (tally.ops, tally.acked, tally.read) == (2, 1, 2)
    assert list(tally.keys) == ["b-0", "c-0"]


def test_calm_begins_with_the_recovery() -> None:
    """The calm phase begins with the invocation of the recovery, neither earlier nor at its end."""
    tally = Tally()
    seen = []
    for at_ns, kind, f in [(5, "info", "crash"), (7, "invoke", "recover"), (9, "info", "recover")]:
        tally(Op(index=0, time_ns=at_ns, process=-1, type=kind, f=f, value={}))  # type: ignore[arg-type]
        seen.append(tally.calm_since_ns)
    assert seen == [None, 7, 7]
