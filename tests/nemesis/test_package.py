"""Faults say which options and targets they accept, and refuse everything else in words."""

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from checkers import fault_intervals
from harness.app.catalogue import NEMESES
from model.layout import Layout, with_kraft, with_zookeeper
from nemesis import options
from nemesis.draws import ClusterShape
from nemesis.package import Environment, Fault, Package
from tests.nemesis.conftest import APIS, POINTS, FakeCluster

LAYOUTS = (with_zookeeper(3), with_kraft(3, 3, combined=False))
HERE = Environment(LAYOUTS[0], FakeCluster, "simulated")
BY_HAND: dict[str, tuple[Any, dict[str, Any]]] = {
    "at-point": (["broker-1"], {"point": POINTS[0]}),
    "bit-flip": ("leader:x-0", {"key": "x-0"}),
    "drop-request": ("leader:x-0", {"api": "Produce", "naming": "x"}),
    "duplicate-request": ("leader:x-0", {"api": "Produce", "naming": "x"}),
}
"""Targets and options of the faults that are never drawn."""
DRAWS = 400


def shape(layout: Layout) -> ClusterShape:
    """Return the shape of a cluster with these nodes."""
    return ClusterShape(
        layout,
        ("x-0", "x-1"),
        coordinators=("group-coordinator:g", "transaction-coordinator:t"),
        asked=tuple(api for api in APIS if api in ("Produce", "Fetch", "Metadata")),
    )


def home(fault: Fault) -> Environment:
    """Return a cluster that has what the fault affects."""
    layout = LAYOUTS["controllers" in fault.name]
    return Environment(layout, FakeCluster, "simulated")


def fine(package: Package, fault: Fault) -> list[tuple[Any, dict[str, Any]]]:
    """Return targets and options that the fault accepts."""
    if package.draw is None or fault.name in BY_HAND:
        return [BY_HAND[fault.name]]
    rng = random.Random(1)
    drawn = [package.draw(rng, shape(home(fault).layout)) for _ in range(DRAWS)]
    found = [(each.targets, each.options) for each in drawn if each.fault == fault.name]
    assert found, f"{fault.name} is not drawn"
    return found


FAULTS = {fault.name: (package, fault) for package in NEMESES.values() for fault in package.faults}
FIELDS = {
    (fault.name, field.encode_name): inspect.type_info(field.type)
    for _, fault in FAULTS.values()
    for field in msgspec.structs.fields(fault.options)
}
"""The types of all options."""


def bare(type_: inspect.Type) -> list[inspect.Type]:
    """Return the types that a type consists of, without descriptions and without ``None``."""
    match type_:
        case inspect.Metadata(type=of):
            return bare(of)
        case inspect.UnionType(types=types):
            return [each for of in types for each in bare(of)]
        case inspect.NoneType():
            return []
        case _:
            return [type_]


def beyond(type_: inspect.Type) -> list[float]:
    """Return numbers right outside of a type's bounds."""
    found: list[float] = []
    for each in bare(type_):
        if isinstance(each, inspect.IntType | inspect.FloatType):
            step = 1 if isinstance(each, inspect.IntType) else 1e-6
            found += [] if each.ge is None else [each.ge - step]
            found += [] if each.gt is None else [each.gt]
            found += [] if each.le is None else [each.le + step * max(1, abs(each.le))]
    return found


def refused(name: str, changed: dict[str, Any]) -> str | None:
    """Return why the fault refuses fine options after this change."""
    package, fault = FAULTS[name]
    targets, given = fine(package, fault)[0]
    return fault.refusal(targets, given | changed, home(fault))


@pytest.mark.parametrize("name", FAULTS)
def test_drawn_targets_and_options_are_accepted(name: str) -> None:
    """A fault accepts everything that its package draws."""
    package, fault = FAULTS[name]
    for targets, given in fine(package, fault):
        assert fault.refusal(targets, given, home(fault)) is None
        assert isinstance(package.typed(name, given), fault.options)


@pytest.mark.parametrize("name", FAULTS)
def test_an_option_of_another_name_is_refused(name: str) -> None:
    """The refusal of a misspelt option lists the right ones."""
    why = refused(name, {"wehn": 1})
    assert why is not None
    assert why.startswith("no option is called wehn; there is ")
    assert {each for fault, each in FIELDS if fault == name} <= set(
        why.partition("there is ")[2].split(", ")
    )


@pytest.mark.parametrize(("name", "option"), FIELDS)
def test_an_option_of_another_type_is_refused(name: str, option: str) -> None:
    """The refusal of a value names the option, the value and what is allowed."""
    wrongs: list[Any] = [{}, 1j, ["?", 7]]
    for wrong in wrongs:
        why = refused(name, {option: wrong})
        assert why is not None
        assert why.startswith(f"{option} = {wrong}: must be ")


@pytest.mark.parametrize(
    ("name", "option"), [each for each, type_ in FIELDS.items() if beyond(type_)]
)
def test_a_number_out_of_its_range_is_refused(name: str, option: str) -> None:
    """Numbers below and above the bounds are refused, and so is what is no finite number."""
    for wrong in (*beyond(FIELDS[name, option]), float("nan"), float("inf"), True):
        why = refused(name, {option: wrong})
        assert why is not None, wrong
        assert f"{option} = {wrong}: must be a" in why


@pytest.mark.parametrize(
    ("name", "option"),
    [
        each
        for each, type_ in FIELDS.items()
        if any(isinstance(of, inspect.LiteralType) for of in bare(type_))
    ],
)
def test_a_word_that_is_no_choice_is_refused(name: str, option: str) -> None:
    """A misspelt word is refused with all words that are allowed."""
    why = refused(name, {option: "dwon"})
    assert why is not None
    for of in bare(FIELDS[name, option]):
        if isinstance(of, inspect.LiteralType):
            assert all(str(value) in why for value in of.values)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize(
    "targets",
    [None, 7, [], {}, "contoller", "leader:", "leader:x", "group-coordinator:", ["broker-4"], [1]],
)
def test_a_target_that_cannot_be_is_refused(name: str, targets: Any) -> None:
    """The refusal of a target lists what targets may be, or the nodes of the cluster."""
    package, fault = FAULTS[name]
    why = fault.refusal(targets, fine(package, fault)[0][1], home(fault))
    assert why is not None
    assert why.startswith(("no such target: ", "no node "))


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("kill-zookeeper", ["broker-1"]),
        ("kill-zookeeper", "controller"),
        ("partition-majorities-ring", ["broker-1"]),
        ("partition-majorities-ring", "controller"),
        ("disk-full", ["broker-1", "broker-2"]),
        *(
            (name, ["zookeeper"])
            for name in ("hold-request", "expire-session", "bit-flip", "reassign", "disk-full")
        ),
    ],
)
def test_a_target_that_a_fault_cannot_have_is_refused(name: str, targets: Any) -> None:
    """Some faults affect only ZooKeeper, only brokers, one broker or several."""
    package, fault = FAULTS[name]
    assert fault.refusal(targets, fine(package, fault)[0][1], home(fault)) is not None


def test_a_missing_option_is_refused() -> None:
    """An option without a default must be there."""
    _, fault = FAULTS["drop-packets"]
    why = fault.refusal("controller", {}, HERE)
    assert why == "share is missing: it must be a number above 0, 1 at most"
    with pytest.raises(ValueError, match="share is missing"):
        options.read(fault.options, {})


def test_a_state_of_an_unknown_broker_is_refused() -> None:
    """A fault cannot wait for a broker that the cluster does not have."""
    once = {"key": "x-0", "leader": "broker-1", "out_of_sync": ["broker-9"]}
    _, fault = FAULTS["kill"]
    why = fault.refusal(["broker-1"], {"once": once}, HERE)
    assert why == "once: no node broker-9 (broker-1, broker-2, broker-3)"
    del once["out_of_sync"]
    assert fault.refusal(["broker-1"], {"once": once}, HERE) is None


def test_the_page_of_faults_lists_every_option(repository: Path) -> None:
    """``docs/faults.md`` lists the options of each fault with what is allowed."""
    lines = (repository / "docs" / "faults.md").read_text().splitlines()
    for (name, option), type_ in FIELDS.items():
        if option not in ("when", "once"):
            text = f"`{option}`: {options.described(type_)}"
            assert any(f"`{name}`" in line and text in line for line in lines), (name, option)


def test_checkers_name_faults_that_exist() -> None:
    """The lists by which checkers judge former leaders name only faults of the packages."""
    listed = (
        *fault_intervals.HARMLESS,
        *fault_intervals.SILENT,
        *fault_intervals.KEEP_CONNECTIONS,
    )
    assert set(listed) <= FAULTS.keys()


def test_names_of_faults_are_unique() -> None:
    """A fault's name identifies it in schedules and histories."""
    names = [name for package in NEMESES.values() for name in package.names]
    assert len(names) == len(set(names)) == len(FAULTS)
