"""The search for an execution that explains a history: prefix, snapshot isolation, serializable.

A transaction takes a snapshot, from which it reads, and then commits. Its snapshot contains the
transactions before it in its session. The levels differ in what may happen between the two:

- prefix: other transactions may commit;
- snapshot isolation: other transactions may, unless they write a common key;
- serializable: none may.

These problems are NP-complete, so the search has a budget of steps.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from checkers.isolation.sessions import INITIAL, Sessions

Level = Literal["prefix", "snapshot-isolation", "serializable"]


class _State(NamedTuple):
    """How far each session is, and the last writer of each key."""

    progress: tuple[int, ...]
    """For each session twice the number of its committed transactions, plus one if the next one has
    its snapshot."""
    writer: tuple[int, ...]


def explained(
    history: Sessions, level: Level, before: Mapping[int, set[int]], budget: int
) -> bool | Literal["unknown"]:
    """Return whether an execution explains a history; unknown if the budget is spent.

    Args:
        before: for each transaction, others that commit before it at every weaker level.
        budget: the number of steps that the search may try.
    """
    search = _Search(history, level, before)
    seen = {search.start}
    stack = [search.following(search.start)]
    while stack:
        state = next(stack[-1], None)
        if state is None:
            stack.pop()
            continue
        if search.is_end(state):
            return True
        budget -= 1
        if budget < 0:
            return "unknown"
        if state not in seen:
            seen.add(state)
            stack.append(search.following(state))
    return search.is_end(search.start)


class _Search:
    """The steps of possible executions."""

    def __init__(self, history: Sessions, level: Level, before: Mapping[int, set[int]]) -> None:
        self._history, self._level, self._before = history, level, before
        keys: dict[Any, int] = {}
        for txn in history.txns:
            for key in txn.writes:
                keys.setdefault(key, len(keys))
        self._keys = keys
        self._session = {n: at for at, each in enumerate(history.sessions) for n in each}
        self.start = _State((0,) * len(history.sessions), (INITIAL,) * len(keys))

    def is_end(self, state: _State) -> bool:
        """Return whether all transactions committed."""
        return all(
            at == 2 * len(session)
            for at, session in zip(state.progress, self._history.sessions, strict=True)
        )

    def following(self, state: _State) -> Iterator[_State]:
        """Yield the states after one step."""
        for session, at in enumerate(state.progress):
            if at // 2 == len(self._history.sessions[session]):
                continue
            number = self._history.sessions[session][at // 2]
            if at % 2:
                if self._may_commit(state, number):
                    yield self._committed(state, session, number)
            elif self._may_begin(state, number):
                if self._level != "serializable":
                    yield self._moved(state, session)
                elif self._may_commit(state, number):
                    yield self._committed(self._moved(state, session), session, number)

    def _may_begin(self, state: _State, number: int) -> bool:
        """Return whether the last writers are those that a transaction read from."""
        txn = self._history.txns[number]
        if any(state.writer[self._keys[key]] != writer for key, writer in txn.reads):
            return False
        return self._level != "snapshot-isolation" or all(
            txn.writes.isdisjoint(
                self._history.txns[self._history.sessions[session][at // 2]].writes
            )
            for session, at in enumerate(state.progress)
            if at % 2
        )

    def _may_commit(self, state: _State, number: int) -> bool:
        """Return whether all that must commit before a transaction has committed."""
        return all(self._has_committed(state, other) for other in self._before.get(number, ()))

    def _has_committed(self, state: _State, number: int) -> bool:
        txn = self._history.txns[number]
        return number == INITIAL or txn.place < state.progress[self._session[number]] // 2

    @staticmethod
    def _moved(state: _State, session: int) -> _State:
        at = state.progress
        return state._replace(progress=(*at[:session], at[session] + 1, *at[session + 1 :]))

    def _committed(self, state: _State, session: int, number: int) -> _State:
        writer = list(state.writer)
        for key in self._history.txns[number].writes:
            writer[self._keys[key]] = number
        return self._moved(state, session)._replace(writer=tuple(writer))
