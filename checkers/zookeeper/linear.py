"""Judges whether the writes to each znode are linearizable, with the rejected ones.

Rejections are ordered like writes: a server answers one only after every earlier transaction. Of
reads, only those take part that follow a ``sync`` after the cluster had recovered. The data of a
write that no such read has seen makes no difference, and is left out, which makes writes of unknown
outcome alike.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from checkers.kernels.checker_runs import GaveUp
from checkers.kernels.found import Found
from checkers.linearizability import judging
from checkers.linearizability.judging import Budget, Part
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal
from checkers.zookeeper.calls import Call, History

BUDGET = Budget(steps=5_000_000, bytes=1 << 30)
"""What the searches of one history may use."""
ANSWERS = ("bad-version", "no-node", "node-exists")
"""The rejections that say something about a znode."""
WRITES = ("create", "set", "delete")


class Znode(Model):
    """A znode that is created, set on condition of its version, read and deleted.

    The state is ``None``, or a version and data. Values of operations are pairs of what was asked
    and what was answered, where ``None`` is unknown.
    """

    initial: State = None

    def only_reads(self, operation: Operation) -> bool:
        """Rejections change nothing."""
        return operation.f not in WRITES

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        """Return the znode after an operation."""
        asked, answer = operation.value
        match operation.f:
            case "create" if state is None:
                return 0, asked
            case "set" if state is not None:
                condition, data = asked
                after = state[0] + 1
                if condition in (-1, state[0]) and answer in (None, after):
                    return after, data
            case "delete" if state is not None and asked in (-1, state[0]):
                return None
            case "read" if state == answer:
                return state
            case "rejected":
                return state if _rejects(state, asked, answer) else _illegal(state, operation)
            case _:
                pass
        return _illegal(state, operation)


def _rejects(state: State, condition: int, answer: str) -> bool:
    match answer:
        case "no-node":
            return state is None
        case "node-exists":
            return state is not None
        case _:
            return state is not None and condition not in (-1, state[0])


def _illegal(state: State, operation: Operation) -> Inconsistent:
    held = "there was no znode" if state is None else f"the znode had version {state[0]}"
    return Inconsistent(f"{operation.f} {operation.value[0]} had the answer {operation.value[1]},"
                        f" and {held}")  # fmt: skip


def judged_paths(history: History) -> dict[str, list[Call]]:
    """Return the calls on each znode that only single writes without sessions change."""
    left_out = {part[1] for call in history.of("multi") for part in call.value["parts"]}
    found = history.by_path(*WRITES, "get")
    for path, calls in found.items():
        special = any(call.value.get("ephemeral") or call.value.get("sequential") for call in calls)
        is_created = any(call.f == "create" for call in calls)
        if special or not is_created:
            left_out.add(path)
    return {path: calls for path, calls in found.items() if path not in left_out}


def operations(history: History, calls: Iterable[Call]) -> Iterator[Operation]:
    """Yield the operations on one znode that must be linearizable."""
    mine = list(calls)
    reads = [call for call in mine if call.f == "get" and history.is_final(call)]
    finals = {call.invoked for call in reads}
    last = {call.value["data"] for call in reads}
    versions = {
        call.value["data"]: call.value["stat"]["version"]
        for call in mine
        if call.f == "get" and call.ok and call.value["stat"] is not None
    }
    for call in mine:
        named = _named(call, last, versions, is_final=call.invoked in finals)
        if named is not None:
            f, asked, answer = named
            is_done = call.outcome != "info"
            yield Operation(
                f,
                (asked, answer),
                call.invoked,
                call.completed if is_done else NEVER,
                call.process,
                call.invoked,
                call.completed if is_done else -1,
            )


def _named(
    call: Call, last: set[Any], versions: dict[Any, int], *, is_final: bool
) -> tuple[str, Any, Any] | None:
    """Return the operation, what it asked and what was answered."""
    value = call.value
    if call.outcome == "fail":
        is_answer = call.f in WRITES and call.error in ANSWERS
        return ("rejected", value.get("version", -1), call.error) if is_answer else None
    data = value.get("data")
    kept = data if data in last else None
    match call.f:
        case "create":
            return "create", kept, None
        case "set":
            known = value["stat"]["version"] if call.ok else versions.get(data)
            return "set", (value.get("version", -1), kept), known
        case "delete":
            return "delete", value.get("version", -1), None
        case _ if is_final:
            stat = value["stat"]
            return "read", None, None if stat is None else (stat["version"], data)
        case _:
            return None


def linearizable(history: History) -> Iterator[Found]:
    """Find znodes whose writes have no order that explains every answer.

    Raises :class:`~checkers.kernels.checker_runs.GaveUp` if a search used up its budget.
    """
    gave_up = None
    for path, calls in judged_paths(history).items():
        judgement = judging.judge(list(operations(history, calls)), Znode(), BUDGET)
        yield from (_found(path, part) for part in judgement.illegal)
        gave_up = gave_up or judgement.unknown_because
    if gave_up is not None:
        raise GaveUp(gave_up)


def _found(path: str, part: Part) -> Found:
    outcome = part.outcome
    assert isinstance(outcome, Illegal), "no monitor judges this model"
    blocked = part.operations[outcome.blocked]
    why = outcome.refusals[0].why if outcome.refusals else "no order explains it"
    return Found(
        anomaly="zk-nonlinearizable",
        key=path,
        ops=(blocked.event,),
        why=f"no order of the writes explains event {blocked.event}: {why}",
    )


def count(history: History) -> int:
    """Return how many operations are judged."""
    return sum(len(list(operations(history, calls))) for calls in judged_paths(history).values())
