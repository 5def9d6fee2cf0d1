"""Promises about sessions are judged as by trying every order."""

from random import Random

import pytest

from bench.oracles.session_kinds import KIND, history, is_explained, sequential, zookeeper
from checkers.linearizability import sessions
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal, Linearized


def test_zookeepers_promise() -> None:
    """The search agrees with trying every order."""
    counts = {True: 0, False: 0}
    for seed in range(1500):
        operations = history(Random(seed), 1 + seed % 6)
        search = sessions.of_zookeeper(KIND.model, operations)
        outcome = search.run(100_000)
        wanted = is_explained(KIND.model, operations, zookeeper(operations))
        assert isinstance(outcome, Linearized if wanted else Illegal), (seed, operations)
        counts[wanted] += 1
    assert min(counts.values()) > 100


def test_sequential_consistency() -> None:
    """The search agrees with trying every order, and the order that it finds is one."""
    counts = {True: 0, False: 0}
    for seed in range(1500):
        operations = history(Random(seed), 1 + seed % 6)
        search = sessions.SequentialSearch(KIND.model, operations)
        outcome = search.run(100_000)
        wanted = is_explained(KIND.model, operations, sequential(operations))
        assert isinstance(outcome, Linearized if wanted else Illegal), (seed, operations)
        counts[wanted] += 1
        if isinstance(outcome, Illegal):
            assert outcome.refusals[0].why
    assert min(counts.values()) > 100


PUT, GET = "put", "get"


@pytest.mark.parametrize(
    ("operations", "is_zookeeper", "is_sequential"),
    [
        # A stale read of another session.
        ([(PUT, "a", 0, 1, 1), (GET, "", 2, 3, 2)], True, True),
        # The session's own update is not visible to it.
        ([(PUT, "a", 0, 1, 1), (GET, "", 2, 3, 1)], False, False),
        # Reads go back.
        ([(PUT, "a", 0, 1, 1), (GET, "a", 2, 3, 2), (GET, "", 4, 5, 2)], False, False),
        # A read sees an update of the future.
        ([(GET, "a", 0, 1, 2), (PUT, "a", 2, 3, 1)], False, True),
        # Updates that do not overlap seem to be reversed.
        (
            [(PUT, "a", 0, 1, 1), (PUT, "b", 2, 3, 2), (GET, "b", 4, 5, 3), (GET, "a", 6, 7, 3)],
            False,
            True,
        ),
        # The session goes on after an update in doubt, which never happened …
        ([(PUT, "a", 0, NEVER, 1), (GET, "", 2, 3, 1)], True, True),
        # … or happened later, …
        ([(PUT, "a", 0, NEVER, 1), (GET, "", 2, 3, 1), (GET, "a", 4, 5, 1)], True, True),
        # … but not before what the session did before.
        ([(GET, "a", 0, 1, 1), (PUT, "a", 2, NEVER, 1), (GET, "", 4, 5, 1)], False, False),
        # What follows is judged.
        ([(PUT, "a", 0, NEVER, 1), (GET, "b", 2, 3, 1)], False, False),
    ],
)
def test_what_each_promises(
    operations: list[tuple[str, str, int, int, int]], is_zookeeper: bool, is_sequential: bool
) -> None:
    """The promises differ in real time, and agree on what a session sees."""
    asked = [Operation(f, ["k", value], *rest) for f, value, *rest in operations]
    model = KIND.model
    zk = sessions.of_zookeeper(model, asked).run(1000)
    assert isinstance(zk, Linearized) is is_zookeeper
    sc = sessions.SequentialSearch(model, asked).run(1000)
    assert isinstance(sc, Linearized) is is_sequential
