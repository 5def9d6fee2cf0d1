"""Judges a history by a model: linearizable, not linearizable, or unknown within the budget.

The operations of each key are judged alone: by a monitor if one applies, and otherwise by a search.
Where that does not end at once, a result may be found that no order explains, whatever else
happened. All searches share the budget: each key is searched for a number of steps that doubles
with each turn, the keys with few operations first, so that one hard key does not keep another one
from being found illegal.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from checkers.linearizability import fast, sessions
from checkers.linearizability.models import Model, stepped
from checkers.linearizability.monitors import Conflict
from checkers.linearizability.operations import Operation, parts
from checkers.linearizability.search import Illegal, Linearized, Search

SLICE = 20_000
"""Number of steps of the first turn, and between two looks at the memory."""
EXPLANATION_STEPS = 50_000
"""Number of steps of a search where a monitor has decided already."""
EXPLAINED_OPERATIONS = 100_000
"""Number of operations of a key above which no search says why, where a monitor has decided."""


@dataclass(frozen=True)
class Budget:
    """What a search may use; if it uses more, the result is unknown."""

    steps: int = 50_000_000
    """Number of configurations, over all keys."""
    bytes: int = 2 << 30
    """Memory for the configurations that were met, over all keys."""

    @property
    def for_explanations(self) -> "Budget":
        """What a search may use where a monitor has decided, to say why as well."""
        return Budget(min(self.steps, EXPLANATION_STEPS), self.bytes)


class Part(NamedTuple):
    """The judgement of the operations of one key."""

    key: Hashable
    operations: Sequence[Operation]
    outcome: Linearized | Illegal | None
    """``None``: no search decided it. Another key is illegal, the budget was used up, or a monitor
    decided."""
    steps: int
    """How many configurations the search entered."""
    is_monitored: bool = False
    """Whether a monitor decided."""
    conflict: Conflict | None = None
    """What the monitor found; its rows are those of ``operations``."""

    @property
    def is_illegal(self) -> bool:
        """Whether it is certain that no order explains the operations."""
        return self.conflict is not None or isinstance(self.outcome, Illegal)


@dataclass(frozen=True)
class Judgement:
    """Whether a history is linearizable."""

    valid: bool | Literal["unknown"]
    parts: tuple[Part, ...]
    """By key, in the order of their first operations."""
    unknown_because: str | None = None

    @property
    def illegal(self) -> list[Part]:
        """The keys whose operations have no order."""
        return [part for part in self.parts if part.is_illegal]


def judge(operations: Sequence[Operation], model: Model, budget: Budget | None = None) -> Judgement:
    """Return whether operations are linearizable.

    Raises :class:`~model.history.BadHistory` for an operation that the model does not have.
    """
    limit = Budget() if budget is None else budget
    keyed = [model.part(operation) for operation in operations]
    by_key = parts([alone for _, alone in keyed], [key for key, _ in keyed])
    inner = model.inner
    for _, alone in keyed:  # a monitor would not notice what the model does not have
        stepped(inner, inner.initial, alone)
    decided = {key: fast.decide(inner, mine) for key, mine in by_key.items()}
    searches = {
        key: Search(inner, mine)
        for key, mine in by_key.items()
        if _is_searched(decided[key], len(mine))
    }
    conflicts = {key: d.conflict for key, d in decided.items() if d is not None and d.conflict}

    def refute() -> bool:
        for key, search in searches.items():
            if search.outcome is None and decided[key] is None:
                conflict = fast.refute(inner, by_key[key])
                if conflict is not None:
                    conflicts[key] = conflict
        return bool(conflicts)

    budgeted = limit if not conflicts else limit.for_explanations
    used_up = _search(searches, budgeted, refute if not conflicts else None)
    found = []
    for key, mine in by_key.items():
        search, decision = searches.get(key), decided[key]
        found.append(
            Part(
                key,
                mine,
                None if search is None else search.outcome,
                0 if search is None else search.steps,
                decision is not None or key in conflicts,
                conflicts.get(key),
            )
        )
    if any(part.is_illegal for part in found):
        return Judgement(False, tuple(found))
    if used_up is None:
        return Judgement(True, tuple(found))
    return Judgement("unknown", tuple(found), used_up)


def _is_searched(decision: fast.Decision | None, count: int) -> bool:
    """Return whether a key is searched: nothing has decided it, or a search may say more."""
    if decision is None:
        return True
    return decision.conflict is not None and count <= EXPLAINED_OPERATIONS


def judge_sessions(
    operations: Sequence[Operation], model: Model, consistency: str, budget: Budget | None = None
) -> Judgement:
    """Return whether operations keep a promise about sessions, one of :data:`SESSIONS`.

    All keys are judged together, so that the model must not have parts: see
    :class:`~checkers.linearizability.sessions.Together`.
    """
    limit = Budget() if budget is None else budget
    search = SESSIONS[consistency](model, operations)
    used_up = _search({None: search}, limit)
    part = Part(None, operations, search.outcome, search.steps)
    valid: bool | Literal["unknown"] = "unknown" if used_up else not part.is_illegal
    return Judgement(valid, (part,), used_up)


class Searching(Protocol):
    """A search that can be continued."""

    steps: int
    outcome: Linearized | Illegal | None

    @property
    def size(self) -> int:
        """How many operations there are."""
        ...

    @property
    def bytes(self) -> int:
        """About how much memory it uses."""
        ...

    def run(self, steps: int) -> Linearized | Illegal | None:
        """Search for so many steps, and return the outcome, if there is one by then."""
        ...


SESSIONS: dict[str, Callable[[Model, Sequence[Operation]], Searching]] = {
    "sequential": sessions.SequentialSearch,
    "zookeeper": sessions.of_zookeeper,
}
"""The promises about sessions by name."""


def _search(
    searches: Mapping[Hashable, Searching],
    budget: Budget,
    refute: Callable[[], bool] | None = None,
) -> str | None:
    """Search until one key is illegal or all are decided; return which budget was used up.

    After the first turn, ``refute`` says whether it is certain that one of the others is illegal.
    """
    waiting = sorted(searches.values(), key=lambda search: search.size)
    left, turn, held = budget.steps, SLICE, sum(search.bytes for search in waiting)
    used_up = None
    while waiting and used_up is None:
        undecided = []
        for search in waiting:
            before, begun = search.bytes, search.steps
            if not _take_turn(search, min(turn, left), budget.bytes - held + before):
                used_up = f"the search used up its memory of {budget.bytes >> 20:,} MiB"
            if isinstance(search.outcome, Illegal):
                return None
            held += search.bytes - before
            left -= search.steps - begun
            if search.outcome is None:
                undecided.append(search)
            if left <= 0 and undecided:
                used_up = used_up or f"the search used up its budget of {budget.steps:,} steps"
            if used_up is not None:
                break
        if turn == SLICE and refute is not None and (undecided or used_up) and refute():
            return None
        waiting, turn = undecided, turn * 2
    return used_up


def _take_turn(search: Searching, steps: int, size: int) -> bool:
    """Search for so many steps; return whether the search has not more than this size by then."""
    end = search.steps + steps
    while search.steps < end:
        if search.run(min(SLICE, end - search.steps)) is not None:
            return True
        if search.bytes > size:
            return False
    return True
