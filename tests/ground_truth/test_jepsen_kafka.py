"""Histories with published verdicts: those of Jepsen's Kafka checker.

``DIFFERENCES`` says where these checkers differ on purpose and why, and each difference has a test
of its own.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers import history_file, table_builder
from checkers.kernels import cycles, key
from checkers.kernels.found import Found
from checkers.kernels.loss import unseen
from checkers.kernels.rows import groups
from checkers.tables import Tables
from harness.app import check
from model import history as history_
from model.op import Op

pytestmark = pytest.mark.ground_truth

CASES = Path("..", "shared", "data", "cases", "jepsen-kafka.json")

DIFFERENCES = {
    "nonmonotonic-send-subscribe-away": "Jepsen finds nothing, and its analysis calls that a quirk:"
    " what a process reads has no say in the order of what it writes",
    "g0": "Jepsen takes any operation for a transaction. A plain send of two records is two"
    " sends, which others may come between; the same as a transaction is G0",
    "g1c-pure-wr": "a circle of reads alone is never legal, one with a write always: we name them"
    " apart, `wr-cycle` and `G1c`",
    "max-offsets": "a helper of Jepsen's own; our columns tell the same",
    "log-last-index": "a helper of Jepsen's own; our ranks tell the same",
    "unseen": "Jepsen's series over time, for a plot; we judge a history by its end, which may be"
    " at any event",
    "empty-history": "Jepsen calls it invalid, as it has no graph; we know too little to say",
}
PLAIN = (
    "inconsistent-offsets-info-read",
    "lost-write-inconsistent",
    "lost-write-atomic-proven",
    "txn-abort-good",
    "nonmonotonic-poll-subscribe-away",
    "nonmonotonic-poll-subscribe-same",
    "nonmonotonic-poll-assign-away",
    "nonmonotonic-send",
    "int-poll-skip",
    "int-nonmonotonic-poll",
    "duplicate-basic",
    "g1c-ww-wr",
)


@pytest.fixture(scope="session")
def cases(pytestconfig: pytest.Config) -> dict[str, Any]:
    text = (pytestconfig.rootpath / CASES).read_text()
    return {case["id"]: case for case in json.loads(text)["cases"]}


class Names(dict[Any, int]):
    """Numbers for values that are words in Jepsen's tests; numbers stay."""

    _unnamed = 5000

    def __missing__(self, word: Any) -> int:
        if word is None:  # values are unique, even where they do not matter
            self._unnamed += 1
            return self._unnamed
        self[word] = word if isinstance(word, int) else 1000 + len(self)
        return self[word]

    def words(self) -> dict[int, Any]:
        return {number: word for word, number in self.items()}


def ours(history: list[dict[str, Any]], names: Names) -> list[Op]:
    """Convert a published history to events of this project."""

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

    retired: Counter[int] = Counter()
    found = []
    for n, op in enumerate(history):
        # In Jepsen's own tests a process continues after info, which it never does in a run of
        # Jepsen. Here it becomes another process.
        process = op["process"] + 100 * retired[op["process"]]
        retired[op["process"]] += op["type"] == "info"
        found.append(
            Op(
                index=op.get("index", n),
                time_ns=op.get("time", n),
                process=process,
                type=op["type"],
                f=op["f"],
                value=[micro_op(given) for given in op["value"]],
            )
        )
    return found


def found_in(tables: Tables) -> list[Found]:
    """Return what the kernels find before folding, because Jepsen folds nothing."""
    of_keys = [
        f
        for log in tables.logs()
        for kernel in (*key.BASIC.values(), *key.DERIVED.values())
        for f in kernel(log)
        if not f.anomaly.startswith("unseen")
    ]
    return of_keys + cycles.kernel(tables)


def as_jepsen(f: Found, words: dict[int, Any]) -> dict[str, Any]:
    """Convert a finding to Jepsen's entry, as far as it has the same parts."""
    value = words.get(f.value) if f.value is not None else None
    also = [words.get(number) for number in f.also]
    match f.anomaly:
        case "inconsistent-offsets":
            return {"key": f.key, "offset": f.offset, "values": also}
        case "lost-write":
            return {"key": f.key, "value": value, "writer": f.ops[0]}
        case "duplicate":
            return {"key": f.key, "value": value, "offsets": list(f.also), "count": len(f.also)}
        case "nonmonotonic-send":
            return {"key": f.key, "values": also, "ops": list(f.ops)}
        case "nonmonotonic-poll":
            return {"key": f.key, "last value": value, "ops": list(f.ops)}
        case "int-nonmonotonic-poll":
            return {"key": f.key, "last value": value, "op": f.ops[0]}
        case "int-poll-skip":
            return {"key": f.key, "skipped": [value], "op": f.ops[0]}
        case "G0" | "G1c" | "wr-cycle":
            return {"cycle": Counter(f.ops)}
        case _:
            raise AssertionError(f"no case is about {f.anomaly}")


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    """Return Jepsen's entry with those parts only that a finding has by itself."""
    if "cycle" in entry:
        return {"cycle": Counter(entry["cycle"][1:])}
    return entry | {"last value": entry["values"][-1] if "values" in entry else None}


@pytest.mark.parametrize("case", PLAIN)
def test_as_published(histories: Any, cases: dict[str, Any], case: str) -> None:
    """The anomalies that Jepsen's own tests assert are found with each witness, and absent ones are
    not."""
    names = Names()
    found = found_in(histories.tables(ours(cases[case]["history"], names)))
    words = names.words()
    (published,) = cases[case]["checks"]
    if published["expected"].get("errors-exactly") == {}:
        assert found == []
        return
    for anomaly, entries in published["expected"]["errors"].items():
        mine = [as_jepsen(f, words) for f in found if f.anomaly == anomaly]
        theirs = [comparable(entry) for entry in entries or ()]
        assert mine == [
            {name: entry[name] for name in m} for m, entry in zip(mine, theirs, strict=True)
        ]


@pytest.mark.parametrize("case", PLAIN)
def test_as_published_in_edn(
    histories: Any, cases: dict[str, Any], case: str, tmp_path: Path
) -> None:
    """The same anomalies are found when the histories are read from EDN as Jepsen writes it."""
    ops = ours(cases[case]["history"], Names())
    path = tmp_path / "history.edn"
    path.write_text("\n".join(printed(msgspec.to_builtins(op)) for op in ops))
    told = found_in(table_builder.of_history(history_file.read(path, lambda done: None)))
    assert told == found_in(histories.tables(ops))


def printed(value: Any) -> str:
    """Print a value as Clojure does."""
    match value:
        case dict():
            named = "type" in value
            pairs = (f"{':' if named else ''}{k} {printed(v)}" for k, v in value.items())
            return "{" + ", ".join(pairs).replace("time_ns", "time") + "}"
        case list():
            return f"[{' '.join(map(printed, value))}]"
        case str():
            return f":{value}"
        case None:
            return "nil"
        case _:
            return str(value)


def test_every_case_is_here(cases: dict[str, Any]) -> None:
    """Every published case is here, or has a reason why not."""
    assert sorted(cases) == sorted((*PLAIN, *DIFFERENCES))


def test_what_a_process_reads_has_no_say_in_what_it_writes(
    histories: Any, cases: dict[str, Any]
) -> None:
    """``nonmonotonic-send-subscribe-away``: a subscription does not change how sends are judged."""
    names = Names()
    tables = histories.tables(ours(cases["nonmonotonic-send-subscribe-away"]["history"], names))
    (found,) = found_in(tables)
    assert (found.anomaly, found.ops) == ("nonmonotonic-send", (1, 11))
    assert cases["nonmonotonic-send-subscribe-away"]["checks"][0]["expected"] == {
        "errors": {"nonmonotonic-send": None}
    }


@pytest.mark.parametrize(("f", "expected"), [("send", []), ("txn", [{"cycle": Counter((2, 3))}])])
def test_plain_sends_are_no_transaction(
    histories: Any, cases: dict[str, Any], f: str, expected: list[Any]
) -> None:
    """``g0``: only as a transaction, a send has the anomaly that Jepsen reports."""
    history = [op | {"f": f} for op in cases["g0"]["history"]]
    words = (names := Names()).words()
    found = found_in(histories.tables(ours(history, names)))
    assert [as_jepsen(x, words) for x in found if x.anomaly == "G0"] == expected
    (entry,) = cases["g0"]["checks"][0]["expected"]["errors"]["G0"]
    assert comparable(entry) == {"cycle": Counter((2, 3))}


def test_a_circle_of_reads_has_a_name_of_its_own(histories: Any, cases: dict[str, Any]) -> None:
    """``g1c-pure-wr``: a cycle of reads is Jepsen's G1c cycle, and is called ``wr-cycle``."""
    names = Names()
    (found,) = found_in(histories.tables(ours(cases["g1c-pure-wr"]["history"], names)))
    (entry,) = cases["g1c-pure-wr"]["checks"][0]["expected"]["errors"]["G1c"]
    assert found.anomaly == "wr-cycle"
    assert as_jepsen(found, names.words()) == comparable(entry)


def test_max_offsets(histories: Any, cases: dict[str, Any]) -> None:
    """``max-offsets``: the largest offset of each partition is as Jepsen computes it."""
    case = cases["max-offsets"]
    (done,) = case["history"]  # Jepsen's helper takes it without an invocation
    asked = done | {"type": "invoke", "value": [], "index": 0, "time": 0}
    tables = histories.tables(ours([asked, done | {"index": 1}], Names()))
    told = {
        log.key: max([*log.sends.offset.tolist(), *log.polls.offset.tolist()])
        for log in tables.logs()
    }
    assert told == case["checks"][0]["expected"]


def test_log_last_index(histories: Any, cases: dict[str, Any]) -> None:
    """``log-last-index``: the rank of each value's last offset is as Jepsen computes it."""
    (published,) = cases["log-last-index"]["checks"]
    names = Names()
    records = [
        [offset, names[value]]
        for offset, values in enumerate(published["input"])
        for value in values or ()
    ]
    ops = [
        Op(index=n, time_ns=n, process=0, type=kind, f="poll", value=value)  # type: ignore[arg-type]
        for n, (kind, value) in enumerate(
            [("invoke", [["poll"]]), ("ok", [["poll", {"x": records}]])]
        )
    ]
    known = histories.log(ops).known
    _, ends = groups(known.value[known.by_value])
    last = known.by_value[ends - 1]
    told: list[list[str] | None] = [None] * len(known.offsets)
    for rank, value in zip(known.rank(known.offset[last]).tolist(), known.value[last], strict=True):
        told[rank] = [*(told[rank] or ()), names.words()[int(value)]]
    assert told == published["expected"]


def test_unseen(histories: Any, cases: dict[str, Any]) -> None:
    """``unseen``: there are as many unread records as Jepsen counts, wherever the history ends."""
    history = cases["unseen"]["history"]
    for entry in cases["unseen"]["checks"][0]["expected"]:
        tables = histories.tables(ours(history[: entry["time"] + 1], Names()))
        told = {
            log.key: sum(f.folded + 1 for f in unseen(log) if f.anomaly == "unseen-unchecked")
            for log in tables.logs()
        }
        assert told == entry["unseen"]


def test_empty_history(cases: dict[str, Any], tmp_path: Path) -> None:
    """``empty-history``: an empty history is not valid."""
    case = cases["empty-history"]
    history_.write(tmp_path / "history.jsonl", ours(case["history"], Names()))
    verdict = check.judge(tmp_path / "history.jsonl", inline=True)
    assert case["checks"][0]["expected"] == {"valid": "not true"}
    assert verdict.valid == "unknown"
