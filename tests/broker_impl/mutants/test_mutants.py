import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_impl import mutants
from broker_impl.errors import ConfigError
from broker_impl.replica import acks, fencing, follower, isr, watermark

ALL = mutants.names()
SYMPTOMS = {
    *("lost-write", "duplicate", "inconsistent-offsets", "stuck", "crash", "phantom"),
    *("G1a", "precommitted-read", "zombie-write", "stuck-lso", "stuck-producer", "eos-mismatch"),
    "torn-transaction",
    *("commit-regression", "commit-ahead", "commit-mismatch", "lost-commit", "double-owner"),
    "lso-ahead",
    "subscribed-deletion",
    *("zk-expired-early", "zk-session-stolen", "zk-ephemeral-outlived", "zk-torn-multi"),
    *("zk-watch-missed", "zk-watch-repeated", "zk-list-divergence", "zk-divergence"),
    "reordered",
}


@pytest.fixture(autouse=True)
def _none_stays() -> Iterator[None]:
    yield
    mutants.removed()


def rule(of: str) -> object:
    module, function = of.split(":")
    return getattr(importlib.import_module(module), function)


def test_names() -> None:
    """The names of all mutants can be listed, sorted, across the sections of the catalogue."""
    names = mutants.names()
    assert names == sorted(names)
    assert {"ack-on-local-append", "pstate-not-replicated", "truncate-to-hw-loss"} <= {*names}


@pytest.mark.parametrize("name", ALL)
def test_plant_and_remove(name: str) -> None:
    """Planting replaces exactly the named rule, and removing restores it."""
    chosen = mutants.get(name)
    correct = rule(chosen.of)
    assert correct is not chosen.rule
    mutants.plant([name])
    assert rule(chosen.of) is chosen.rule
    others = [mutants.get(other) for other in ALL if other != name]
    assert not any(rule(other.of) is other.rule for other in others)
    mutants.removed()
    assert rule(chosen.of) is correct


def test_planted_twice_is_removed_as_well() -> None:
    """Removing restores the original rule, however often mutants were planted."""
    correct = acks.outcome
    mutants.plant(["ack-on-local-append"])
    mutants.plant(["ack-on-local-append", "no-min-isr-check"])
    mutants.removed()
    assert acks.outcome is correct


def test_an_unknown_name_plants_nothing() -> None:
    """A misspelt name plants nothing, and is a configuration error that lists the known names."""
    correct = isr.enough_in_sync
    with pytest.raises(
        ConfigError, match=r"no mutant 'no-min-isr'; there are .*, ack-on-local-append"
    ):
        mutants.plant(["no-min-isr-check", "no-min-isr"])
    assert isr.enough_in_sync is correct


@pytest.mark.parametrize("name", ALL)
def test_a_mutant_has_the_form_and_the_story(name: str) -> None:
    """A mutant has the signature of its rule, a story, a source, a schedule and a symptom."""
    chosen = mutants.get(name)
    correct = rule(chosen.of)
    assert callable(correct)
    assert inspect.signature(correct) == inspect.signature(chosen.rule)
    assert chosen.rule.__name__.startswith(chosen.of.split(":")[1]), "several may replace one rule"
    assert len(chosen.story.splitlines()) > 2
    assert chosen.source
    assert chosen.schedule.endswith(".")
    if chosen.kind == "protocol":
        assert not chosen.symptom, "it is correct by itself"
    else:
        assert chosen.symptom in SYMPTOMS or chosen.symptom.startswith("invariant:")


def sources() -> list[Path]:
    """The broker's own modules, without the generated messages, which contain no rules."""
    root = Path(__file__).resolve().parents[3] / "broker_impl"
    return [path for path in sorted(root.rglob("*.py")) if path.parent.name != "messages"]


def rules() -> set[tuple[str, str]]:
    """Every rule that a mutant replaces, and every function of modules that have only rules."""
    found = {(of[0], of[1]) for of in (mutants.get(name).of.split(":") for name in ALL)}
    for module in (acks, fencing, follower, isr, watermark):
        functions = inspect.getmembers(module, inspect.isfunction)
        found |= {(module.__name__, name) for name, _ in functions}
    return found


def imported(path: Path) -> set[tuple[str, str]]:
    """Every ``from module import name`` of a file."""
    return {
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_no_rule_is_imported_by_its_name() -> None:
    """No rule is imported by ``from module import rule``, which a mutant would not replace."""
    forbidden = rules()
    caught = {path.name: names for path in sources() if (names := imported(path) & forbidden)}
    assert caught == {}


def test_the_broker_does_not_know_its_mutants() -> None:
    """Only the start of a process imports the mutants: the correct code has no switch for them."""
    importers = [
        path.name
        for path in sources()
        if path.parent.name != "mutants" and ("broker_impl", "mutants") in imported(path)
    ]
    assert importers == ["__main__.py", "__main__.py"], "of the broker and of ZooKeeper"
