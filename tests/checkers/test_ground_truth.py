"""Histories whose verdicts somebody else has published: those of Jepsen's Kafka checker."""

import json
from pathlib import Path
from typing import Any

import pytest

from checkers.kernels import key
from checkers.kernels.rows import Found
from model.op import Op

pytestmark = pytest.mark.ground_truth

CASES = Path("..", "shared", "data", "cases", "jepsen-kafka.json")

EXPECTED: dict[str, dict[str, list[tuple[Any, ...]]]] = {
    # case: anomaly: (key, value or offset, further) as the published errors have them
    "inconsistent-offsets-info-read": {"inconsistent-offsets": [("x", 0, (1, 2))]},
    "lost-write-inconsistent": {"lost-write": [("x", "a", ())]},
    "lost-write-atomic-proven": {"lost-write": [("y", "b", ())]},
    "txn-abort-good": {},
    "nonmonotonic-poll-subscribe-away": {"nonmonotonic-poll": []},
    "nonmonotonic-poll-subscribe-same": {"nonmonotonic-poll": [("x", "b", (3, 7))]},
    "nonmonotonic-poll-assign-away": {"nonmonotonic-poll": []},
    "nonmonotonic-send": {"nonmonotonic-send": [("x", "a", (1, 11))]},
    # Jepsen has no finding here, and its own analysis calls that a quirk: what a process reads has
    # no say in the order of what it writes.
    "nonmonotonic-send-subscribe-away": {"nonmonotonic-send": [("x", "a", (1, 11))]},
    "int-poll-skip": {"int-poll-skip": [("x", "b", (3,)), ("x", "b", (5,))]},
    "int-nonmonotonic-poll": {"int-nonmonotonic-poll": [("x", "a", (3,)), ("x", "c", (5,))]},
    "duplicate-basic": {"duplicate": [("x", "a", (1, 3))]},
}


@pytest.fixture(scope="session")
def cases(pytestconfig: pytest.Config) -> dict[str, Any]:
    text = (pytestconfig.rootpath / CASES).read_text()
    return {case["id"]: case for case in json.loads(text)["cases"]}


class Names(dict[Any, int]):
    """Numbers for values that are words there; numbers stay."""

    def __missing__(self, word: Any) -> int:
        self[word] = word if isinstance(word, int) else 1000 + len(self)
        return self[word]

    def words(self) -> dict[int, Any]:
        return {number: word for word, number in self.items()}


def ours(history: list[dict[str, Any]], names: Names) -> list[Op]:
    """A published history as events of ours."""

    def record(pair: list[Any]) -> list[Any]:
        return [pair[0], names[pair[1]]]

    def micro_op(given: Any) -> Any:
        match given:
            case ["send", k, [offset, v]]:
                return ["send", k, record([offset, v])]
            case ["send", k, v]:
                return ["send", k, names[v]]
            case ["poll", polled]:
                return [
                    "poll",
                    {k: [record(pair) for pair in pairs] for k, pairs in polled.items()},
                ]
            case _:
                return given

    return [
        Op(
            index=op.get("index", n),
            time_ns=op.get("time", n),
            process=op["process"],
            type=op["type"],
            f=op["f"],
            value=[micro_op(given) for given in op["value"]],
        )
        for n, op in enumerate(history)
    ]


def summary(found: Found, words: dict[int, Any]) -> tuple[Any, ...]:
    if found.anomaly == "inconsistent-offsets":
        return (found.key, found.offset, tuple(words[value] for value in found.also))
    further: tuple[int, ...] = () if found.anomaly == "lost-write" else found.ops
    if found.anomaly == "duplicate":
        further = found.also
    return (found.key, words[found.value or 0], further)


@pytest.mark.parametrize("case", EXPECTED)
def test_jepsens_kafka_checker(histories: Any, cases: dict[str, Any], case: str) -> None:
    """The anomalies that Jepsen's own tests assert are found, with the same witnesses.

    Asked of the kernels before folding, because Jepsen folds nothing.
    """
    names = Names()
    tables = histories.tables(ours(cases[case]["history"], names))
    words = names.words()
    found = [
        f
        for log in tables.logs()
        for kernel in (*key.BASIC.values(), *key.DERIVED.values())
        for f in kernel(log)
        if not f.anomaly.startswith("unseen")
    ]
    for anomaly, expected in EXPECTED[case].items():
        assert [summary(f, words) for f in found if f.anomaly == anomaly] == expected
    if not EXPECTED[case]:
        assert found == []


def test_every_case_about_sends_and_polls_is_here(cases: dict[str, Any]) -> None:
    """The others are about cycles, helpers of Jepsen's own, its plot of the unseen, and an empty
    history (which is the verdict's business)."""
    others = {"max-offsets", "log-last-index", "empty-history", "unseen", "g0", "g1c-pure-wr"}
    assert cases.keys() - EXPECTED.keys() == others | {"g1c-ww-wr"}
