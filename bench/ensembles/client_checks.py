"""What clients may see of an ensemble (I12): checks of their operations and the final state."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.ensembles.clients import FORBIDDEN, Seen


class Final(NamedTuple):
    """What one server answers after the end, when all faults are healed and all clients closed."""

    server: int
    register: tuple[int, int, bytes]
    """The version, the mzxid and the data of the register."""
    pair: tuple[int, int, bytes, bytes]
    queue: Mapping[str, bytes]
    """The data of each sequential node, by path."""
    owned: Sequence[str]
    """The ephemeral nodes that still exist."""


def judge(seen: Sequence[Seen], finals: Sequence[Final]) -> list[str]:
    """Return what is wrong, as ``name: reason``, each kind once."""
    found: dict[str, str] = {}
    for violation in (*_queue(seen, finals), *_register(seen, finals), *_pairs(seen, finals)):
        found.setdefault(violation.partition(":")[0], violation)
    for final in finals:
        if final.owned:
            found.setdefault(
                "ephemeral-left",
                f"ephemeral-left: server {final.server} has {list(final.owned)[:3]} after the end "
                "of all sessions",
            )
        if final._replace(server=0) != finals[0]._replace(server=0):
            found.setdefault(
                "servers-differ",
                f"servers-differ: server {final.server} and server {finals[0].server} answer "
                "differently",
            )
    return list(found.values())


def _queue(seen: Sequence[Seen], finals: Sequence[Final]) -> Iterator[str]:
    """Acknowledged nodes exist; numbers are unique, and increase in the order of real time."""
    appended = [each for each in seen if each.what == "append" and each.outcome == "ok"]
    by_path: dict[str, bytes] = {}
    for each in appended:
        path, value = each.value
        if by_path.setdefault(path, value) != value:
            yield f"number-used-twice: two creates returned {path}"
    for final in finals:
        for path, value in by_path.items():
            if path not in final.queue:
                yield f"lost-write: {path} was acknowledged, but server {final.server} lacks it"
            elif final.queue[path] != value:
                yield f"lost-write: {path} has other data than was acknowledged"
    ended = sorted(appended, key=lambda each: each.ended)
    highest, at = "", 0
    for each in sorted(appended, key=lambda each: each.began):
        while at < len(ended) and ended[at].ended < each.began:
            highest = max(highest, ended[at].value[0])
            at += 1
        if each.value[0] <= highest:
            yield f"number-went-back: {each.value[0]} was created after {highest}"
    yield from _owners(seen, finals)
    yield from _sessions_order(seen, finals)


def _sessions_order(seen: Sequence[Seen], finals: Sequence[Final]) -> Iterator[str]:
    """The writes of a session take effect in the order in which its client has sent them."""
    sessions: dict[bytes, tuple[int, int]] = {}
    for each in seen:
        if each.what in ("append", "pair") and each.value is not None and each.outcome != "no":
            value = each.value if isinstance(each.value, bytes) else each.value[1]
            sessions[value] = each.client, each.session
    reads = [each.value for each in seen if each.what == "read-pair" and each.outcome == "ok"]
    lefts = {left: value for left, _, value, _ in reads}
    orders = [[lefts[mzxid] for mzxid in sorted(lefts)]]
    orders += [[final.queue[path] for path in sorted(final.queue)] for final in finals]
    for values in orders:
        last: dict[tuple[int, int], int] = {}
        for value in values:
            if value not in sessions:
                continue
            session, number = sessions[value], int(value.partition(b".")[2])
            if number < last.get(session, 0):
                yield (
                    f"reordered: write {number} of client {session[0]} has taken effect after its "
                    f"write {last[session]}"
                )
            last[session] = number


def _owners(seen: Sequence[Seen], finals: Sequence[Final]) -> Iterator[str]:
    sent = {
        each.value if isinstance(each.value, bytes) else each.value[1]
        for each in seen
        if each.what == "append" and each.value is not None and each.outcome != "no"
    }
    for final in finals:
        values = list(final.queue.values())
        if len(set(values)) < len(values):
            yield f"executed-twice: server {final.server} has two nodes of one create"
        strange = set(values) - sent
        if strange:
            yield f"phantom: no client has created {sorted(strange)[:3]} of server {final.server}"


def _register(seen: Sequence[Seen], finals: Sequence[Final]) -> Iterator[str]:
    """A version has one value; an acknowledged write is before all that begin after it."""
    states = [each for each in seen if each.what in ("set", "get", "sync") and each.outcome == "ok"]
    known: dict[int, tuple[int, bytes]] = {}
    for version, mzxid, data in [*(each.value for each in states), *(f.register for f in finals)]:
        if known.setdefault(version, (mzxid, data)) != (mzxid, data):
            yield f"lost-write: version {version} of the register has had two values"
    yield from _increasing(states)
    sets = [each for each in states if each.what == "set"]
    ended = sorted(sets, key=lambda each: each.ended)
    highest, at = -1, 0
    for each in sorted(sets, key=lambda each: each.began):
        while at < len(ended) and ended[at].ended < each.began:
            highest = max(highest, ended[at].value[0])
            at += 1
        if each.value[0] <= highest:
            yield f"lost-write: version {each.value[0]} was written after version {highest}"
    last = max((each.value[0] for each in sets), default=0)
    for final in finals:
        if final.register[0] < last:
            yield f"lost-write: version {last} of the register is lost on server {final.server}"


def _increasing(states: Iterable[Seen]) -> Iterator[str]:
    """In a session the register never goes back, not even over reconnects to other servers."""
    last: dict[tuple[int, int], int] = {}
    for each in states:
        session = each.client, each.session
        mzxid = each.value[1]
        if mzxid < last.get(session, 0):
            yield f"read-went-back: client {each.client} read {mzxid:#x} after {last[session]:#x}"
        last[session] = max(mzxid, last.get(session, 0))


def _pairs(seen: Sequence[Seen], finals: Sequence[Final]) -> Iterator[str]:
    """The two nodes change together (a multi), and never to what a rejected multi wrote."""
    reads = [each.value for each in seen if each.what == "read-pair" and each.outcome == "ok"]
    for left, right, one, other in [*reads, *(final.pair for final in finals)]:
        if FORBIDDEN in (one, other):
            yield "torn-multi: a rejected multi has changed a node"
        if right < left or (left == right and one != other):
            yield f"torn-multi: the nodes of a multi have {left:#x} and {right:#x}"
    for final in finals:
        if final.pair[2] != final.pair[3]:
            yield f"torn-multi: server {final.server} has half of a multi"
