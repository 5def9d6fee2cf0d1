"""A history in memory is judged by the name of a model, or by a model of one's own."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import aggregates, objects, transaction_models
from checkers.linearizability.columnar import Columns
from checkers.linearizability.models import Inconsistent, Model, State
from checkers.linearizability.operations import Operation
from model.history import BadHistory
from model.op import Op
from tests.checkers.test_aggregates import done, events

STALE = events(*done("write", 1), *done("write", 2), *done("read", None, 1))


def test_a_stale_read_is_explained() -> None:
    """The verdict names the operations, and the one that has no place in any order."""
    found = objects.check(STALE, "register")
    assert (found.valid, found.model, found.operations) == (False, "register", 3)
    assert found.anomalies == {"nonlinearizable": 1}
    assert "each of two values must have been replaced" in found.why[0]
    assert found.why[1:] == (
        "read 1 of process 0 (event 5) has no place in any order. The 2 operations that ended"
        " before it can be ordered; it is illegal in each state to which they can lead:",
        "- it read 1, and the register held 2",
    )


def test_keys_are_judged_alone() -> None:
    """With ``keyed``, values are pairs, and the key is named."""
    said = [*done("write", ["x", 1]), *done("write", ["y", 2]), *done("read", None, ["x", 2])]
    found = objects.check(events(*said), "register", keyed=True)
    assert found.valid is False
    assert found.why[0].startswith("Of key x: no order explains read 2")


def test_consistency_of_sessions() -> None:
    """A stale read of another process is neither linearizable, nor does it break a promise about
    sessions; going back breaks these too. Keys count together."""
    stale = [*done("write", ["x", 1]), *done("read", None, ["x", 0], 1)]
    back = [
        *done("write", ["x", 1]),
        *done("write", ["y", 1]),
        *done("read", None, ["y", 1], 1),
        *done("read", None, ["x", 0], 1),
    ]
    for consistency, first, second in (
        ("linearizable", False, False),
        ("sequential", True, False),
        ("zookeeper", True, False),
    ):
        for said, valid in ((stale, first), (back, second)):
            found = objects.check(events(*said), "register", keyed=True, consistency=consistency)
            assert found.valid is valid, (consistency, said)
            assert list(found.anomalies) == ([] if valid else [objects.ANOMALIES[consistency]])
    with pytest.raises(ValueError, match="the consistency must be one of linearizable, seq"):
        objects.check([], "register", consistency="x")
    with pytest.raises(ValueError, match="the model set has no consistency to choose"):
        objects.check([], "set", consistency="sequential")


def test_the_initial_value_counts() -> None:
    """The first read sees the initial value, which is 0 unless it is given."""
    read = events(*done("read", None, 7))
    assert objects.check(read, "register").valid is False
    assert objects.check(read, "register", initial=7).valid is True


GIVE = {"from": "a", "to": "b", "amount": 5}
BALANCES = {"a": 10, "b": 0}


@pytest.mark.parametrize(
    ("model", "said", "initial"),
    [
        ("register", [*done("read", None, [1]), *done("write", [2]), *done("write", [2])], [1]),
        ("multi-register", [*done("txn", [["r", "x", [1]], ["w", "x", 2]])], [1]),
        ("linearizable-counter", done("read", None, 7), 7),
        ("kv", [*done("get", ["k", None], ["k", "a"]), *done("append", ["k", "b"])], "a"),
        ("linearizable-bank", [*done("read", None, BALANCES), *done("transfer", GIVE)], BALANCES),
        ("linearizable-bank", [*done("transfer", GIVE)], BALANCES),
        ("sessions", done("txn", [["r", "x", 7]]), 7),
    ],
)
def test_initial_values_of_models(model: str, said: list[Any], initial: Any) -> None:
    """A history that begins with the initial value is legal with it, and illegal without."""
    assert objects.check(events(*said), model).valid is False
    assert objects.check(events(*said), model, initial=initial).valid is True


def test_the_initial_value_of_transactions_on_registers() -> None:
    """A read of the initial value sees the initial version, as a read of nothing does. A value that
    is written as well shows nothing."""
    skew = [
        *done("txn", [["r", "x", 0], ["w", "y", 1]], process=0),
        *done("txn", [["r", "y", 0], ["w", "x", 2]], process=1),
    ]
    mixed = [skew[0], skew[2], skew[1], skew[3], *done("txn", [["r", "x", 2], ["r", "y", 1]])]
    asked: dict[str, Any] = {"consistency": "serializable"}
    assert objects.check(events(*mixed), "rw-register", **asked).valid is True
    found = objects.check(events(*mixed), "rw-register", initial=0, **asked)
    assert (found.valid, found.anomalies) == (False, {"G2-item": 1})
    assert "initial version" in found.why[0]
    again = [*mixed, *done("txn", [["w", "x", 0]])]
    found = objects.check(events(*again), "rw-register", initial=0, **asked)
    why = "a transaction writes 0 to x, its initial value"
    assert (found.valid, found.unknown_because) == ("unknown", why)
    assert objects.check(events(*again), "rw-register", initial=7, **asked).valid is True


WITH_INITIAL = {
    "register",
    "cas-register",
    "multi-register",
    "kv",
    "linearizable-counter",
    "linearizable-bank",
    "rw-register",
    "sessions",
}


@pytest.mark.parametrize("name", sorted({*objects.NAMES} - WITH_INITIAL))
def test_a_model_without_an_initial_value_refuses_one(name: str) -> None:
    """An initial value is never ignored."""
    with pytest.raises(ValueError, match=f"^the model {name} has no initial value to choose$"):
        objects.check([], name, initial=0)
    with pytest.raises(ValueError, match="the model Toggle has no initial value to choose"):
        objects.check([], Toggle(), initial=0)


@pytest.mark.parametrize(
    ("name", "initial", "why"),
    [
        ("linearizable-counter", None, "is a whole number"),
        ("kv", {"k": "a"}, "is one text or number, which each key holds"),
        ("linearizable-bank", 5, "is a map of accounts to whole numbers"),
        ("linearizable-bank", {"a": "5"}, "is a map of accounts to whole numbers"),
    ],
)
def test_initial_values_of_another_shape(name: str, initial: Any, why: str) -> None:
    """The sentence says which shape the initial value has."""
    with pytest.raises(ValueError, match=f"^the initial value of {name} {why}$"):
        objects.check([], name, initial=initial)


LOCKED = {"f": ["acquire", "release"], "call": [0, 2], "end": [1, 3]}


def test_processes_of_a_file_that_matter(tmp_path: Path) -> None:
    """Operations of a file without processes are not all those of one client."""
    path = tmp_path / "history.parquet"
    pq.write_table(pa.table(LOCKED), path)
    assert objects.check(Columns(path), "mutex").valid is True
    for model, asked, needs in (
        ("owned-mutex", "linearizable", "the model owned-mutex"),
        ("reentrant-mutex", "linearizable", "the model reentrant-mutex"),
        ("mutex", "sequential", "the consistency sequential"),
        ("mutex", "zookeeper", "the consistency zookeeper"),
    ):
        with pytest.raises(BadHistory, match=f"has no column process, which {needs} needs"):
            objects.check(Columns(path), model, consistency=asked)
    pq.write_table(pa.table({**LOCKED, "process": [1, 2]}), path)
    assert objects.check(Columns(path), "owned-mutex").valid is False
    assert objects.check(Columns(path), "mutex", consistency="sequential").valid is True


@pytest.mark.parametrize("model", ["mutex", "unordered-queue", "register"])
def test_an_operation_of_a_file_that_ends_before_its_call(model: str, tmp_path: Path) -> None:
    """It is refused, also where no monitor reads the columns; one that takes no time is not."""
    path = tmp_path / "history.parquet"
    f = {"mutex": "acquire", "unordered-queue": "enqueue", "register": "write"}[model]
    for end, is_right in ((5, True), (4, False)):
        pq.write_table(pa.table({"f": [f], "call": [5], "end": [end], "value": [1]}), path)
        if is_right:
            assert objects.check(Columns(path), model).valid is True
        else:
            with pytest.raises(BadHistory, match="an operation ends before its call"):
                objects.check(Columns(path), model)


@pytest.mark.parametrize("name", objects.NAMES)
def test_every_model_judges_an_empty_history(name: str) -> None:
    """Each name belongs to a model, and nothing is wrong with a history without operations."""
    assert objects.check([], name).valid in (True, "unknown")
    kinds = (aggregates.RULES, objects.LINEARIZABLE, transaction_models.NAMES)
    assert sum(name in kind for kind in kinds) == 1


def test_an_unknown_model_is_refused() -> None:
    """The names are listed."""
    with pytest.raises(ValueError, match="there is no model x: it must be one of register, cas-"):
        objects.check([], "x")


ODD: list[Any] = [None, True, 1, -1, 2.5, "x", [], [1], [1, 2], [[1, 2], [3]], {}, {"a": [1]}, [{}]]
NAMES_OF_OPERATIONS = [
    "read",
    "write",
    "cas",
    "txn",
    "get",
    "put",
    "append",
    "add",
    "remove",
    "increment",
    "decrement",
    "enqueue",
    "dequeue",
    "push",
    "pop",
    "acquire",
    "release",
    "generate",
    "transfer",
    "drain",
]


@pytest.mark.parametrize("name", [*objects.LINEARIZABLE, *aggregates.RULES])
@pytest.mark.parametrize("keyed", [False, True])
def test_values_of_any_shape(name: str, keyed: bool) -> None:
    """Any value is judged, or refused with one sentence."""
    refused = []
    for f in NAMES_OF_OPERATIONS:
        for value in ODD:
            said = done(f, ["k", value] if keyed else value)
            try:
                found = objects.check(events(*said, *said), name, keyed=keyed)
            except BadHistory as error:
                refused.append(str(error))
            else:
                assert found.valid in (True, False, "unknown")
    assert refused
    assert [text for text in refused if "\n" in text] == []


@pytest.mark.parametrize("name", transaction_models.NAMES)
def test_transactions_of_any_shape(name: str) -> None:
    """Any value is judged, or is unknown with one sentence."""
    unknown = []
    for value in (*ODD, *([["r", "x", each]] for each in ODD), *([["w", each, 1]] for each in ODD)):
        found = objects.check(events(*done("txn", value)), name)
        unknown.append(found.unknown_because or "")
    assert any(unknown)
    assert [text for text in unknown if "\n" in text] == []


class Toggle(Model):
    """A switch that starts as off: ``toggle`` returns the new position."""

    initial: State = False

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        after = not state
        return after if operation.value is after else Inconsistent(f"it was {state}")


def test_a_model_of_ones_own() -> None:
    """A class with a step is enough."""
    right: list[Op] = events(*done("toggle", None, True), *done("toggle", None, False, 1))
    assert objects.check(right, Toggle()).valid is True
    wrong: Any = objects.check(
        events(*done("toggle", None, True), *done("toggle", None, True)), Toggle()
    )
    assert (wrong.valid, wrong.model, wrong.why[-1]) == (False, "Toggle", "- it was True")
