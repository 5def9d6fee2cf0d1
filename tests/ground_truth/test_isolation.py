"""Histories of transactions with published verdicts: those of Elle and elle-cli.

``DIFFERENCES`` says where these checkers report more than Elle and why; each entry is what they
report instead. ``HELPERS`` are functions of Elle's own that have no counterpart.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from checkers import edn, recorded
from checkers.isolation import Found, Options, Result, judge, lattice, reading
from checkers.isolation.components import Inner
from checkers.isolation.edges import every
from checkers.isolation.groups import last_writes
from checkers.isolation.levels import LEVELS, judge_level
from checkers.isolation.list_anomalies import anomalies
from checkers.isolation.list_append import dependencies, orders
from model.op import Op
from tests.conftest import GROUND_TRUTH

pytestmark = pytest.mark.ground_truth

DIFFERENCES: dict[str, tuple[set[str], str]] = {
    "list-append lost-update": (
        {"G-single-item-realtime", "G2-item", "lost-update"},
        "event 3 completes before event 5 is invoked, which does not see its append: that is a"
        " cycle with one anti-dependency and a step in realtime. Elle explains the way from 3 to 5"
        " only as an anti-dependency.",
    ),
    "list-append huge-scc-file": (
        {"G-single-item-realtime"},
        "event 5351 reads key 7 without the append of event 14, which completed long before. Elle's"
        " search ends at its time-out before it finds a cycle with one anti-dependency.",
    ),
    "list-append unfindable-g-single": (
        {"G-single-item"},
        "the last transaction of the ring reads `anti` without the append of the first one. Elle's"
        " search ends at its time-out; a search for the way back from each anti-dependency visits"
        " each transaction once.",
    ),
    "closed-predicate g2-predicate-read-unseen": (
        {"G-single-realtime", "G2"},
        "event 1 completes before event 3 is invoked, whose predicate misses the write of 1. Elle"
        " says only that a cycle exists which strong snapshot isolation does not allow.",
    ),
    "rw-register g-single-misattribution-commented": (
        {"G-single-item-process", "G2-item", "lost-update"},
        "Elle's own comment wants a G-single and a G2, and both exist: 5 does not see what 3 wrote,"
        " and 3 precedes 5 both in the order of the process and by an anti-dependency.",
    ),
}
SLOW = pytest.mark.slow
HELPERS = {
    "transaction-graph->version-graphs": "takes a graph of transactions as an argument; the orders"
    " of versions are tested in tests/checkers/isolation/test_version_orders.py",
    "gen-sim-si": "the simulated database is Elle's; ours is in test_list_append_oracle.py",
    "gen-sim-ssi": "the simulated database is Elle's; ours is in test_list_append_oracle.py",
    "type-sanity": "Java has several types of integers; a mixture of texts and numbers is tested in"
    " tests/checkers/isolation/test_reading.py",
}


def suite(name: str) -> list[dict[str, Any]]:
    """Return the cases of a suite; none if the data is absent."""
    path = GROUND_TRUTH / "cases" / f"{name}.json"
    found: list[dict[str, Any]] = json.loads(path.read_text())["cases"] if path.is_file() else []
    return found


def is_large(case: dict[str, Any]) -> bool:
    """Return whether a case has thousands of transactions."""
    return isinstance(case["history"], dict)


def checks(name: str) -> list[Any]:
    """Return the checks of a suite that have a counterpart here, as parameters."""
    return [
        pytest.param(case, check, id=f"{case['id']}-{n}", marks=SLOW if is_large(case) else ())
        for case in suite(f"elle-{name}")
        for n, check in enumerate(case["checks"])
        if not {case["id"], check["fn"]} & {*HELPERS}
    ]


def ours(history: Sequence[dict[str, Any]]) -> list[Op]:
    """Convert a published history to events of this project."""
    return [
        Op(
            index=op.get("index", n),
            time_ns=op.get("time", n),
            process=process if isinstance(process := op.get("process", 0), int) else -1,
            type=op["type"],
            f=op.get("f", "txn"),
            value=op["value"],
        )
        for n, op in enumerate(history)
    ]


def from_edn(path: Path) -> list[Op]:
    """Read a history from EDN, with or without a vector around it."""
    return ours([form for _, form in edn.elements(path.read_text())])


def ring() -> list[Op]:
    """Return the history of Elle's test `unfindable-g-single`, by its published description."""
    size, noise = 1000, 30
    txns: list[tuple[int, list[Any]]] = []
    for i in range(size):
        also = {0: ["append", "anti", 0], size - 1: ["r", "anti", None]}
        txns.append((0, [["append", "ring", i], also.get(i, ["append", f"{i}", 0])]))
    txns.append((1, [["r", "ring", [*range(size)]]]))
    for i in range(1, size - 1):
        for j in range(1, noise):
            value: list[Any] = [["append", f"{i}", j]]
            if j == noise - 2:
                value = [["r", f"{i}", [*range(noise - 2)]], ["r", f"anti {i}", None]]
            elif j == noise - 1:
                value = [["append", f"anti {i}", 0], ["r", "ring", None]]
            txns.append((2, value))
    return ours(
        [
            {"type": kind, "process": process, "value": value}
            for process, value in txns
            for kind in ("invoke", "ok")
        ]
    )


def history_of(case: dict[str, Any]) -> list[Op]:
    """Return the events of a case."""
    history = case["history"]
    if isinstance(history, list):
        return ours(history)
    return from_edn(GROUND_TRUTH / history["file"]) if "file" in history else ring()


NAMES = {
    "additional-graphs": "additional_graphs",
    "anomalies": "anomalies",
    "consistency-models": "consistency",
    "linearizable-keys?": "linearizable_keys",
    "sequential-keys?": "sequential_keys",
    "wfr-keys?": "wfr_keys",
}


def options_of(published: dict[str, Any]) -> Options:
    """Convert Elle's options."""
    found: dict[str, Any] = {}
    for name, value in published.items():
        if name == "transaction-order":
            found["transaction_order"] = {int(event): at for event, at in value.items()}
        else:
            found[NAMES[name]] = value if isinstance(value, bool) else tuple(value or ())
    return Options(**found)


def rotations(cycle: Sequence[Any]) -> set[tuple[Any, ...]]:
    return {(*cycle[n:], *cycle[:n]) for n in range(len(cycle))}


def agree(result: Result, expected: dict[str, Any], more: set[str] | None) -> None:
    """Assert that a result is as published, or reports more as a difference says."""
    assert result.valid == expected.get("valid", False)
    if more is not None or "anomaly-types" in expected:
        assert sorted(result.anomaly_types) == sorted(more or expected["anomaly-types"])
    if "not" in expected and not more:
        assert sorted(result.ruled_out) == sorted(expected["not"])
    if more:
        assert {*expected.get("not", ())} <= {*result.ruled_out, *result.also_ruled_out}
    for anomaly, cycles in expected.get("cycles", {}).items():
        found = [tuple(f.events) for f in result.anomalies[anomaly]]
        assert [rotations(cycle[:-1]) for cycle in cycles] == [rotations(f) for f in found]
    for anomaly, steps in expected.get("steps", {}).items():
        kinds = [tuple(step.kind for step in f.steps) for f in result.anomalies[anomaly]]
        assert [rotations(each) for each in steps] == [rotations(each) for each in kinds]
    for anomaly, entries in expected.get("details", {}).items():
        for entry, found_ in zip(entries, result.anomalies.get(anomaly, ()), strict=False):
            events, key, values = DETAILS[anomaly](entry)
            assert (events or found_.events, key, values) == (
                found_.events,
                found_.key,
                found_.values,
            )


DETAILS: dict[str, Callable[[Any], Any]] = {
    "G1a": lambda e: ((e["op"], e["writer"]), e["mop"][1], (e["mop"][2],)),
    "future-read": lambda e: ((e["op"],), e["mop"][1], (e["element"],)),
    "incompatible-order": lambda e: ((3, 4), e["key"], tuple(e["values"])),
    "G1b": lambda e: ((e["op"], e["writer"]), e["mop"][1], (e["mop"][2],)),
    "cyclic-versions": lambda e: (None, e["key"], (tuple(e["scc"]), tuple(e["sources"]))),
    "internal": lambda e: ((e["op"],), e["mop"][1], expected_values(e)),
    "lost-update": lambda e: (tuple(e["txns"]), e["key"], (last_of(e["value"]),)),
    "duplicate-elements": lambda e: ((e["op"],), e["mop"][1], ()),
}


def expected_values(entry: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a read must have returned; Elle writes three dots for an unknown prefix."""
    value = entry["expected"]
    if value is None and isinstance(entry["mop"][2], list):
        return ()  # the initial list
    values = value if isinstance(value, list) else [value]
    return tuple("…" if each == "..." else each for each in values)


def last_of(value: Any) -> Any:
    return value[-1] if isinstance(value, list) else value


def edges_of(events: Sequence[Op], kinds: Sequence[int] = range(3)) -> dict[str, set[int]]:
    """Return the edges between transactions as Elle's tests write them."""
    history = reading.lists(events)
    found, _ = dependencies(history, orders(history))
    event = history.txns.event.tolist()
    table: dict[str, set[int]] = {}
    for source, target, kind in zip(*(c.tolist() for c in every(found)[:3]), strict=True):
        if kind in kinds:
            table.setdefault(str(event[source]), set()).add(event[target])
            table.setdefault(str(event[target]), set())
    return table


def graph(case: dict[str, Any], expected: dict[str, Any]) -> None:
    published = {name: {*targets} for name, targets in expected["edges"].items()}
    kinds = (0,) if case["id"] == "ww-graph" else range(3)
    assert edges_of(ours(case["history"]), kinds) == published


def components(case: dict[str, Any], expected: dict[str, Any]) -> None:
    history = reading.lists(ours(case["history"]))
    found, _ = dependencies(history, orders(history))
    assert Inner(found, len(history.txns.event)).count == expected["scc-count"]


def single(case: dict[str, Any], expected: Any, model: Any, names: Sequence[str]) -> None:
    """Compare the anomalies of some names with the cases that Elle's function returns."""
    events = ours(case["history"])
    found: dict[str, Sequence[Found]] = {}
    if model == "list-append":  # some cases append an element twice, which a judgement refuses
        history = reading.lists(events)
        found |= anomalies(history, orders(history)).shown
    else:
        found |= judge(events, model, Options((), tuple(names))).anomalies
    found = {name: each for name, each in found.items() if name in names}
    published = expected or {}
    if isinstance(published, list):
        published = {names[0]: published}
    assert {*found} == {*published}
    for name, entries in published.items():
        assert [DETAILS[name](e) for e in entries] == [
            (f.events, f.key, f.values) for f in found[name]
        ]


@pytest.mark.parametrize(("case", "check"), checks("list-append"))
def test_list_append(case: dict[str, Any], check: dict[str, Any]) -> None:
    """Elle's tests of list-append: graphs, cases of single anomalies, and whole checks."""
    expected = check["expected"]
    match check["fn"]:
        case "check":
            more, _ = DIFFERENCES.get(f"list-append {case['id']}", (None, ""))
            result = judge(history_of(case), "list-append", options_of(check["options"]))
            agree(result, expected if not more else only(expected, more), more)
        case "graph" | "ww-graph":
            graph(case, expected)
        case "core-check":
            components(case, expected)
        case "g1a-cases":
            single(case, expected, "list-append", ["G1a"])
        case "g1b-cases":
            single(case, expected, "list-append", ["G1b"])
        case "internal-cases":
            single(case, expected, "list-append", ["internal", "future-read"])
        case other:
            raise AssertionError(f"nothing here is like {other}")


def only(expected: dict[str, Any], kept: set[str]) -> dict[str, Any]:
    """Return an expectation without the witnesses of anomalies that are not reported."""
    parts = {name: expected[name] for name in ("cycles", "steps", "details") if name in expected}
    return expected | {
        part: {name: value for name, value in of.items() if name in kept}
        for part, of in parts.items()
    }


@pytest.mark.parametrize(("case", "check"), checks("rw-register"))
def test_rw_register(case: dict[str, Any], check: dict[str, Any]) -> None:
    """Elle's tests of rw-register."""
    expected = check["expected"]
    match check["fn"]:
        case "check":
            more, _ = DIFFERENCES.get(f"rw-register {case['id']}", (None, ""))
            result = judge(history_of(case), "rw-register", options_of(check["options"]))
            agree(result, expected, more)
        case "g1b-cases":
            single(case, expected, "rw-register", ["G1b"])
        case "internal-cases":
            single(case, expected, "rw-register", ["internal"])
        case "core-check(wr-graph only)":
            found = judge(ours(case["history"]), "rw-register", Options(("read-committed",)))
            assert ("G1c" not in found.anomaly_types) == expected["valid"]
        case "ext-index(ext-writes)":
            external_writes(case, expected)
        case other:
            raise AssertionError(f"nothing here is like {other}")


@pytest.mark.parametrize(("case", "check"), checks("closed-predicate"))
def test_closed_predicate(case: dict[str, Any], check: dict[str, Any]) -> None:
    """Elle's tests of predicates over a closed universe of keys."""
    more, _ = DIFFERENCES.get(f"closed-predicate {case['id']}", (None, ""))
    result = judge(history_of(case), "closed-predicate", options_of(check["options"]))
    agree(result, check["expected"], more)


def external_writes(case: dict[str, Any], expected: dict[str, Any]) -> None:
    """The last write of each transaction to each key is the one that others can read."""
    history = reading.registers(ours(case["history"]))
    found: dict[str, dict[str, set[int]]] = {}
    last = last_writes(history.ops)
    for row in last.nonzero()[0].tolist():
        key = found.setdefault(history.names.key(int(history.ops.key[row])), {})
        value = str(history.names.element(int(history.ops.element[row])))
        key.setdefault(value, set()).add(int(history.txns.event[history.ops.txn[row]]))
    assert found == {
        key: {value: {*txns} for value, txns in values.items()} for key, values in expected.items()
    }


def test_every_difference_is_a_case() -> None:
    """Each difference and each helper is about a case that exists."""
    cases = {
        f"{name} {case['id']}": case
        for name in ("list-append", "rw-register", "closed-predicate")
        for case in suite(f"elle-{name}")
    }
    assert {*DIFFERENCES} <= {*cases}
    ids = {case["id"] for case in cases.values()}
    functions = {check["fn"] for case in cases.values() for check in case["checks"]}
    assert {*HELPERS} <= ids | functions


FILES = [
    (repository, name, entry)
    for repository in ("jepsen-io+elle", "ligurio+elle-cli")
    if (GROUND_TRUTH / repository).is_dir()
    for name, entry in json.loads(
        (GROUND_TRUTH / repository / "expected-verdicts.json").read_text()
    )["files"].items()
]


@pytest.mark.parametrize(
    ("path", "entry"),
    [
        pytest.param(
            GROUND_TRUTH / repository / name,
            check,
            id=f"{name}-{n}",
            marks=SLOW if "huge" in name else (),
        )
        for repository, name, entry in FILES
        for n, check in enumerate(entry.get("checks", [entry]))
        if check.get("model", check.get("checker")) in ("list-append", "rw-register")
        and "missing" not in entry
    ],
)
def test_files(path: Path, entry: dict[str, Any]) -> None:
    """The files of Elle and elle-cli have the published verdicts and anomalies."""
    events = ours(json.loads(path.read_text())) if path.suffix == ".json" else from_edn(path)
    options = entry.get("options")
    model: Any = entry.get("model", entry.get("checker"))
    result = judge(events, model, options_of(options if isinstance(options, dict) else {}))
    more, _ = DIFFERENCES.get("list-append huge-scc-file", (None, ""))
    agree(result, entry, more if path.stem == "huge-scc" else None)


def test_lattice() -> None:
    """The closures of the lattice are those of Elle's model of consistency models."""
    published = json.loads((GROUND_TRUTH / "cases" / "elle-lattice.json").read_text())
    closures = published["closures"]
    assert list(lattice.anomaly_order()) == published["anomaly_order"]
    assert {m: sorted(lattice.prohibited_by(m)) for m in closures["prohibited_by_model"]} == {
        m: sorted(anomalies) for m, anomalies in closures["prohibited_by_model"].items()
    }
    assert {a: lattice.boundary([a]) for a in closures["boundary_by_anomaly"]} == {
        a: (tuple(sorted(b["not"])), tuple(sorted(b["also-not"])))
        for a, b in closures["boundary_by_anomaly"].items()
    }
    assert published["friendly_names"] == {**lattice.FRIENDLY}
    assert published["canonical_names"].items() <= {**lattice.MODELS}.items()
    implied = {model: {*others} for model, others in published["models_implies"].items() if others}
    assert {model: {*others} for model, others in lattice.STRONGER.items()} == implied


SESSIONS = ("dbcop", "polysi")
"""Suites of sessions; 0 and null are values of the initial state unless something wrote them."""


def of_sessions(sessions: Sequence[Sequence[dict[str, Any]]]) -> list[Op]:
    """Convert published sessions to events: each session is a process."""
    return ours(
        [
            {
                "type": "ok" if txn.get("committed", True) else "fail",
                "process": process,
                "value": txn["events"],
            }
            for process, session in enumerate(sessions)
            for txn in session
        ]
    )


@pytest.mark.parametrize(
    ("case", "level"),
    [
        pytest.param(case, level, id=f"{name}-{case['id']}-{level}")
        for name in SESSIONS
        for case in suite(name)
        for level in case["expected"]
    ],
)
def test_sessions(case: dict[str, Any], level: str) -> None:
    """The tests of dbcop and PolySI have the published verdicts."""
    verdict = judge_level(of_sessions(case["sessions"]), level, initial=0)
    assert verdict.valid == case["expected"][level]
    assert bool(verdict.why) == (not verdict.valid)


def verdicts_of(repository: str) -> dict[str, dict[str, Any]]:
    """Return the published verdicts of a repository's files; none if they are absent."""
    path = GROUND_TRUTH / repository / "expected-verdicts.json"
    found: dict[str, dict[str, Any]] = (
        json.loads(path.read_text())["files"] if path.is_file() else {}
    )
    return found


@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [
        pytest.param(name, level, entry[level], id=f"{name}-{level}")
        for name, entry in verdicts_of("lassemoldrup+AWDIT").items()
        for level in ("read-committed", "read-atomic", "causal")
    ],
)
def test_awdit(name: str, level: str, expected: bool) -> None:
    """The histories of AWDIT have the published verdicts."""
    events = recorded.read(GROUND_TRUTH / "lassemoldrup+AWDIT" / name).events
    assert judge_level(events, level).valid == expected


@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [
        pytest.param(name, level, expected, id=f"{name}-{level}")
        for name, entry in verdicts_of("hengxin+IsoVista").items()
        for level, expected in ({**entry, **entry["computed_here"]}).items()
        if level in LEVELS
    ],
)
def test_isovista(name: str, level: str, expected: bool) -> None:
    """The bug that IsoVista found in Dgraph is found here too."""
    events = recorded.read(GROUND_TRUTH / "hengxin+IsoVista" / name).events
    assert judge_level(events, level).valid == expected
