"""Small random histories of transactions, executed by a store that is wrong in some of them.

The stores, and what a right one returns, share no code with the checkers of isolation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple

from model.op import Op

State = Mapping[str, Any]
MicroOp = list[Any]
Outcome = Literal["ok", "fail", "info"]
LIST, SET, REGISTER, PREDICATE = "list-append", "set-append", "rw-register", "closed-predicate"
DEAD = object()
"""The value of a key that was deleted; it is never inserted again."""
NEVER = 1 << 30
MODES = ("right", "right", "stale", "mixed", "lossy")
"""How a store executes transactions: on the last state; on one of the last three; each read on any
of these; or so that it overwrites what was changed in between."""
LEAKS = 0.1
"""The share of stores that apply the changes of transactions that failed."""


class Txn(NamedTuple):
    """A transaction as its client saw it."""

    process: int
    outcome: Outcome
    micro_ops: Sequence[MicroOp]
    call: int
    """The place of its invocation; -1 if the history has none."""
    end: int
    """The place of its completion; NEVER if the history has none."""


class Drawn(NamedTuple):
    """A history, and what the judge has to know of it."""

    events: list[Op]
    txns: list[Txn]
    initial: State
    is_complete: bool
    """Whether the last transaction read every element that an ok transaction added to a list."""


def is_read(micro_op: MicroOp) -> bool:
    """Return whether a micro-operation changes nothing."""
    return micro_op[0] in ("r", "rp")


def result(model: str, state: State, micro_op: MicroOp) -> Any:
    """Return what a read returns in a state."""
    if micro_op[0] == "rp":
        alive = {key: value for key, value in state.items() if value is not DEAD}
        return {key: value for key, value in alive.items() if _matches(micro_op[1], value)}
    value = state.get(micro_op[1])
    if model in (LIST, SET):
        return sorted(value or ()) if model == SET else list(value or ())
    return None if value is DEAD else value


def _matches(predicate: Any, value: int) -> bool:
    if predicate == "true":
        return True
    return bool(value == predicate[1] if predicate[0] == "=" else value % 2 == predicate[2])


def changed(model: str, state: State, micro_op: MicroOp) -> State | None:
    """Return the state after a change; ``None`` if the state does not allow it."""
    name, key = micro_op[:2]
    now = state.get(key)
    if model in (LIST, SET):
        return {**state, key: (*(now or ()), micro_op[2])}
    if model == REGISTER:
        return {**state, key: micro_op[2]}
    is_allowed = now is None if name == "insert" else now not in (None, DEAD)
    return {**state, key: DEAD if name == "delete" else micro_op[2]} if is_allowed else None


@dataclass
class _Running:
    """A transaction, while it is executed."""

    process: int
    outcome: Outcome
    asked: list[tuple[str, str]]
    call: int
    is_executed: bool = False
    end: int = NEVER
    micro_ops: list[MicroOp] = field(default_factory=list)

    def seen(self) -> list[MicroOp]:
        """Return the micro-operations with the results that the client knows."""
        if self.outcome == "ok":
            return self.micro_ops
        return [[*each[:2], None] if is_read(each) else each for each in self.micro_ops]


class _Store:
    """Executes transactions, in the way that its mode says."""

    def __init__(self, model: str, rng: Random, initial: State, *, reads_first: bool) -> None:
        self.model, self.rng, self.reads_first = model, rng, reads_first
        self.mode = rng.choice(MODES)
        self.leaks = rng.random() < LEAKS
        self.states: list[State] = [initial]
        self.elements = 0

    def execute(self, txn: _Running, *, is_applied: bool) -> None:
        """Fill in the results of a transaction, and apply its changes unless it has no effect."""
        base = self._snapshot() if self.mode != "right" else self.states[-1]
        view: State = base
        touched: set[str] = set()
        for kind, key in txn.asked:
            for micro_op in self._micro_ops(kind, key, view, touched):
                if is_read(micro_op):
                    where = view
                    if self.mode == "mixed" and micro_op[0] == "r" and key not in touched:
                        where = self._snapshot()
                    micro_op[2] = result(self.model, where, micro_op)
                else:
                    after = changed(self.model, view, micro_op)
                    assert after is not None, "a change is drawn for the state"
                    view = after
                touched.add(micro_op[1] if micro_op[0] != "rp" else "")
                txn.micro_ops.append(micro_op)
        txn.is_executed = True
        if is_applied:
            self.apply(txn, view)

    def apply(self, txn: _Running, view: State | None = None) -> None:
        """Apply the changes of a transaction to the last state, or fail if that is not allowed."""
        state: State | None = self.states[-1]
        changes = [each for each in txn.micro_ops if not is_read(each)]
        if self.mode == "lossy" and view is not None and self.model != PREDICATE:
            state = {**self.states[-1], **{each[1]: view[each[1]] for each in changes}}
        else:
            for each in changes:
                state = None if state is None else changed(self.model, state, each)
        if state is None:
            txn.outcome = "fail"
        else:
            self.states.append(state)

    def _snapshot(self) -> State:
        return self.rng.choice(self.states[-3:])

    def _micro_ops(self, kind: str, key: str, view: State, touched: set[str]) -> list[MicroOp]:
        rng = self.rng
        if kind == "rp":
            return [["rp", rng.choice(("true", ["mod", 2, 0], ["mod", 2, 1], ["=", 1])), None]]
        if kind == "r":
            return [["r", key, None]]
        self.elements += 1
        if self.model == LIST:
            return [["append", key, self.elements]]
        if self.model == SET:
            return [["add", key, self.elements]]
        if self.model == PREDICATE:
            now = view.get(key)
            if now is None:
                return [["insert", key, self.elements]]
            if now is DEAD:
                return [["r", key, None]]
            return [["delete", key] if rng.random() < 0.2 else ["w", key, self.elements]]
        before = [["r", key, None]] if self.reads_first and key not in touched else []
        return [*before, ["w", key, self.elements]]


def draw(model: str, rng: Random, *, final: bool = False, reads_first: bool = False) -> Drawn:
    """Return the history of a few processes.

    Args:
        model: the data type.
        rng: where all choices come from.
        final: the last transaction reads all keys, after all others.
        reads_first: a transaction reads a register before it writes it.
    """
    keys = "xyz"[: rng.randrange(1, 4)]
    has_init = model == PREDICATE and rng.random() < 0.5
    initial: State = dict.fromkeys(keys[:2], 0) if has_init else {}
    store = _Store(model, rng, initial, reads_first=reads_first)
    done = _run(store, rng, keys)
    place = 1 + max((max(each.call, each.end % NEVER) for each in done), default=0)
    if final:
        last = _Running(90, "ok", [("r", key) for key in keys], place)
        store.mode = "right"
        store.execute(last, is_applied=False)
        last.end = place + 1
        done.append(last)
    _lie(model, rng, done[:-1] if final else done)
    has_invocations = rng.random() < 0.85
    if not has_invocations:
        for number, each in enumerate(done):
            each.call, each.end = -1, place + 2 + number if each.end == NEVER else each.end
    shown = {each[1]: each[2] for each in done[-1].micro_ops} if final else {}
    added = [m for each in done if each.outcome == "ok" for m in each.micro_ops if not is_read(m)]
    return Drawn(
        _events(done, initial, rng),
        [Txn(e.process, e.outcome, e.seen(), e.call, e.end) for e in done],
        initial,
        final and model == LIST and all(each[2] in shown[each[1]] for each in added),
    )


def _run(store: _Store, rng: Random, keys: str) -> list[_Running]:
    """Let processes invoke, execute and complete transactions in a random order."""
    slots = rng.randrange(2, 4)
    process = list(range(slots))
    kinds = ("r", "change", "rp") if store.model == PREDICATE else ("r", "change")
    left, place = rng.randrange(2, 7), 0
    running: dict[int, _Running] = {}
    late: list[_Running] = []
    done: list[_Running] = []
    while left or running:
        place += 1
        slot = rng.randrange(slots)
        one = running.get(slot)
        if late and rng.random() < 0.3:
            store.apply(late.pop())
        if one is None and left:
            left -= 1
            asked = [(rng.choice(kinds), rng.choice(keys)) for _ in range(rng.randrange(1, 4))]
            outcome: Outcome = rng.choices(("ok", "info", "fail"), (78, 12, 10))[0]
            running[slot] = _Running(process[slot], outcome, asked, place)
        elif one is not None and not one.is_executed:
            effect = rng.random() < 0.5 if one.outcome == "info" else one.outcome == "ok"
            store.execute(one, is_applied=effect or (one.outcome == "fail" and store.leaks))
            if one.outcome == "info" and not effect and rng.random() < 0.5:
                late.append(one)
        elif one is not None:
            del running[slot]
            done.append(one)
            one.end = place
            if one.outcome == "info":
                process[slot] += slots
                if rng.random() < 0.5:
                    one.end = NEVER
    return done


def _lie(model: str, rng: Random, done: Sequence[_Running]) -> None:
    """Change some results to others that the elements of the history allow."""
    share = rng.choice((0.0, 0.0, 0.0, 0.1, 0.3))
    written: dict[str, list[Any]] = {}
    for txn in done:
        for each in txn.micro_ops:
            if not is_read(each) and len(each) == 3:
                written.setdefault(each[1], []).append(each[2])
    for txn in done:
        for each in txn.micro_ops:
            if rng.random() >= share or each[0] != "r":
                continue
            known = written.get(each[1], [])
            if model in (REGISTER, PREDICATE):
                each[2] = rng.choice([None, *known])
            elif model == LIST and rng.random() < 0.8:
                each[2] = each[2][: rng.randrange(len(each[2]) + 1)]
            else:
                each[2] = rng.sample(known, rng.randrange(len(known) + 1))


def _events(done: Sequence[_Running], initial: State, rng: Random) -> list[Op]:
    rows: list[tuple[int, int, str, Any]] = []
    for each in done:
        if each.call >= 0:
            asked = [[*m[:2], None] if is_read(m) else m for m in each.micro_ops]
            rows.append((each.call, each.process, "invoke", asked))
        if each.end != NEVER:
            rows.append((each.end, each.process, each.outcome, each.seen()))
    if initial:
        rows.append((-1, 80, "ok", dict(initial)))
    return events_of(sorted(rows, key=lambda row: row[0]))


def events_of(rows: Sequence[tuple[int, int, str, Any]]) -> list[Op]:
    """Return events from their places, processes, types and values."""
    return [
        Op(
            index=index,
            time_ns=index,
            process=process,
            type=kind,  # type: ignore[arg-type]
            f="init" if isinstance(value, dict) else "txn",
            value=value,
        )
        for index, (_, process, kind, value) in enumerate(rows)
    ]
