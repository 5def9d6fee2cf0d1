"""Probes in the functions of modules that are in use."""

from collections.abc import Iterator

import pytest

from broker_impl.mutants import System
from broker_impl.replica import isr
from harness.app.rules import recorder
from harness.cluster import mutants
from tests.harness.app.rules import sample_rules
from tests.harness.app.rules.sample_rules import may_join

SAMPLE = sample_rules.__name__


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Remove all probes after each test."""
    yield
    recorder.restore()


def _reached(recorded: recorder.Recorder) -> list[str]:
    """Return the functions and the branches that were reached since the beginning."""
    found = []
    hits = recorded.reached()
    for rule in recorded.rules:
        function = rule.function
        if hits[function.number]:
            found.append(function.name)
        found += [
            f"{branch.text}: {branch.outcome}"
            for number, branch in enumerate(function.branches, function.number + 1)
            if hits[number]
        ]
    recorded.begin()
    return found


def test_functions_and_methods_of_all_kinds_are_found() -> None:
    """Also decorated functions, properties and methods of classes within classes are recorded."""
    recorded = recorder.install([SAMPLE])
    names = [rule.name.removeprefix(f"{SAMPLE}:") for rule in recorded.rules]
    assert names == [
        *("may_join", "_checked", "decorated", "held"),
        *("Log.Part.size", "Log.is_empty", "Log.name", "Log.new"),
    ]
    assert (sample_rules.decorated(2), sample_rules.Log.Part().size(0)) == ("many", -1)
    assert _reached(recorded) == [
        *("decorated", "value > 1: true"),
        *("Log.Part.size", "rows: false"),
    ]
    log = sample_rules.Log.new(1)
    assert log is not None
    assert (log.is_empty, log.name) == (False, "log")
    with sample_rules.held(0) as value:
        assert value is None
    assert _reached(recorded) == [
        *("held", "value: false"),
        *("Log.is_empty", "len(vars(self)) == 9: false"),
        *("Log.name", "Log.new", "value > 0: true"),
    ]


def test_references_to_a_function_are_recorded_too() -> None:
    """A function that another module has imported by name runs the probes."""
    recorded = recorder.install([SAMPLE])
    assert may_join(1, 2) is False
    assert _reached(recorded) == ["may_join", "end >= start: false"]
    assert not any(recorded.reached())


def test_what_is_reached_is_recorded_by_phases() -> None:
    """Each phase has its own branches; the run has reached those of all phases."""
    recorded = recorder.install([SAMPLE])
    assert may_join(1, 2) is False
    recorded.enter("apply kill", 6.5)
    assert may_join(2, 1) is True
    recorded.enter("heal kill", 8.0)

    assert [(phase.name, phase.began_s) for phase in recorded.phases] == [
        ("", 0.0),
        ("apply kill", 6.5),
        ("heal kill", 8.0),
    ]
    first, second, third = (phase.hits for phase in recorded.phases)
    assert sum(first) == sum(second) == 2
    assert first != second
    assert not any(third)
    assert recorded.reached() == bytes(map(max, first, second))


def test_without_probes_nothing_is_recorded() -> None:
    """After they are removed, functions have their own code again, and can get new probes."""
    own = may_join.__code__
    recorded = recorder.install([SAMPLE])
    assert may_join.__code__ is not own
    recorder.restore()
    assert may_join.__code__ is own
    may_join(1, 2)
    assert not any(recorded.reached())
    again = recorder.install([SAMPLE])
    may_join(2, 1)
    assert _reached(again) == ["may_join", "end >= start: true"]


@pytest.mark.parametrize("system", ["kafka", "zookeeper"])
def test_every_rule_that_a_bug_replaces_has_probes(system: System) -> None:
    """The registry of planted bugs names rules that the recorder finds, all of them."""
    rules = {mutant.of for mutant in mutants.catalogue(system).values()}
    recorded = recorder.install(sorted({rule.split(":")[0] for rule in rules}))
    assert rules <= {rule.name for rule in recorded.rules}
    if system == "kafka":
        recorded.begin()
        assert not isr.enough_in_sync(1, 2)
        assert _reached(recorded) == ["enough_in_sync", "in_sync >= isr_min: false"]


def test_a_planted_bug_replaces_a_rule_with_probes() -> None:
    """The probes of a replaced rule are not reached; those of the rule itself are, afterwards."""
    recorded = recorder.install([isr.__name__])
    from broker_impl import mutants as planted

    planted.plant(["no-min-isr-check"])
    try:
        assert isr.enough_in_sync(1, 2)
        assert _reached(recorded) == []
    finally:
        planted.removed()
    assert not isr.enough_in_sync(1, 2)
    assert "enough_in_sync" in _reached(recorded)
