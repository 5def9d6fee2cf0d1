"""Histories with published verdicts: Knossos, Porcupine, elle-cli and Jepsen's checkers."""

import json
from pathlib import Path
from typing import Any

import pytest

from checkers import objects, recorded
from checkers.linearizability import models
from checkers.linearizability.operations import Operation
from checkers.object_verdict import ObjectVerdict
from model.op import Op
from tests.conftest import GROUND_TRUTH

pytestmark = pytest.mark.ground_truth

NOT_A_VERDICT = ("timeout-unknown", "op-at-immediate-failure.edn", "op-at-cas-failure.edn")
"""Cases about a model that never ends, and about files that are not there under these names; the
file that elle-cli has as well is in :func:`test_the_first_operation_without_a_place`."""


def _files(repository: str) -> dict[str, Any]:
    path = GROUND_TRUTH / repository / "expected-verdicts.json"
    return json.loads(path.read_text())["files"]  # type: ignore[no-any-return]


def _cases(suite: str) -> list[dict[str, Any]]:
    return json.loads((GROUND_TRUTH / "cases" / f"{suite}.json").read_text())["cases"]  # type: ignore[no-any-return]


def _judged(path: Path, model: str) -> ObjectVerdict:
    history = recorded.read(path)
    initial = objects.UNSET if history.initial is None else history.initial
    return objects.check(history.events, model, initial=initial)


def test_every_file_of_knossos() -> None:
    """Each file has the verdict of Knossos's own tests."""
    files = _files("jepsen-io+knossos")
    found = {
        name: _judged(GROUND_TRUTH / "jepsen-io+knossos" / name, each["model"]).valid
        for name, each in files.items()
    }
    assert found == {name: each["linearizable"] for name, each in files.items()}
    assert len(found) > 60


def test_every_file_of_porcupine() -> None:
    """Each file has the verdict of Porcupine's own tests; one file is empty."""
    files = {
        name: each["linearizable"]
        for name, each in _files("anishathalye+porcupine").items()
        if each["linearizable"] is not None
    }
    found = {
        name: _judged(
            GROUND_TRUTH / "anishathalye+porcupine" / name,
            "kv" if "/kv/" in name else "cas-register",
        ).valid
        for name in files
    }
    assert found == files
    assert len(found) > 50


def test_every_file_of_elle_cli() -> None:
    """Each file has the exit status of elle-cli's own tests."""
    folder, count = GROUND_TRUTH / "ligurio+elle-cli", 0
    for name, each in _files("ligurio+elle-cli").items():
        for asked in each["checks"]:
            if asked["model"] in objects.NAMES and (folder / name).is_file():
                assert _judged(folder / name, asked["model"]).valid is asked["valid"], name
                count += 1
    assert count >= 10


def test_the_first_operation_without_a_place() -> None:
    """The operation that has no place in any order is the one that Knossos names."""
    path = "ligurio+elle-cli/histories/knossos/cas-register/bad/cas-failure.edn"
    (why, *_) = _judged(GROUND_TRUTH / path, "cas-register").why
    assert "(event 491) has no place in any order" in why


def test_the_small_histories_of_knossos() -> None:
    """Each history in Knossos's tests has its verdict."""
    for case in _cases("knossos-inline"):
        if case["id"] in NOT_A_VERDICT:
            continue
        events = [Op(time_ns=0, **each) for each in case["history"]]
        assert objects.check(events, "register").valid is case["checks"][0]["expected"], case["id"]


MODELS: dict[str, models.Model] = {
    "register": models.Register(0),
    "set": models.Set(),
    "kv": models.KeyValue(),
}


def test_the_small_histories_of_porcupine() -> None:
    """Each history in Porcupine's tests has its verdict; intervals are closed, so that operations
    that only touch are concurrent."""
    from checkers.linearizability import judging

    names = {"put": "write", "get": "read", "add": "add", "read": "read"}
    count = 0
    for case in _cases("porcupine-inline"):
        if case["id"] in NOT_A_VERDICT:
            continue
        model = case["checks"][0]["fn"].removeprefix("linearizable(").removesuffix(")")
        operations = [
            Operation(names[f], args[0] if args else output, call, end, client)
            for client, (f, *args), call, output, end in _intervals(case["history"])
        ]
        valid = judging.judge(operations, MODELS[model]).valid
        assert valid is (case["checks"][0]["expected"] == "Ok"), case["id"]
        count += 1
    assert count == 8


def _intervals(history: dict[str, Any]) -> list[tuple[Any, ...]]:
    if "operations" in history:
        return [
            (each["client"], each["input"], each["call"], each["output"], each["return"])
            for each in history["operations"]
        ]
    calls: dict[int, tuple[Any, ...]] = {}
    found = []
    for place, (kind, client, number, value) in enumerate(history["events"]):
        if kind == "call":
            calls[number] = (client, value, place)
        else:
            asked = calls.pop(number)
            found.append((*asked, value, place))
    return found


@pytest.mark.parametrize("suite", ["jepsen-checkers", "jepsen-long-fork", "jepsen-causal-reverse"])
def test_small_checkers_of_jepsen(suite: str) -> None:
    """Each history in Jepsen's tests has the verdict and the figures of Jepsen's checker."""
    for case in _cases(suite):
        events = [Op(time_ns=0, **{"process": 0, **each}) for each in case["history"]]
        for asked in case["checks"]:
            found = objects.check(events, asked["fn"].partition("(")[0])
            figures = {"valid": found.valid, **found.figures}
            assert {name: figures[name] for name in asked["expected"]} == asked["expected"], case
