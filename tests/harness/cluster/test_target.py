"""A target offers the packages whose capabilities the class of its clusters has."""

import inspect
import random
from pathlib import Path

import pytest

from harness.app import catalogue
from model.plan import Plan
from nemesis import kill, messages, resource_limits
from nemesis.package import Package


@pytest.mark.parametrize(
    ("package", "targets"),
    [
        (kill.PACKAGE, {"processes", "containers", "simulated"}),
        (resource_limits.PACKAGE, {"containers"}),
        (messages.PACKAGE, {"processes", "simulated"}),
    ],
)
def test_offers(package: Package, targets: set[str]) -> None:
    """Kills work everywhere, limits in containers only, single messages not in containers."""
    found = {
        name
        for name, each in catalogue.TARGETS.items()
        if each.kind_of is None and each.offers(package, Plan())
    }
    assert found == targets


@pytest.mark.parametrize("name", [name for name in catalogue.TARGETS if name != "external"])
def test_makers_get_what_they_need(name: str, tmp_path: Path) -> None:
    """What creates the clusters of a target accepts exactly what a run passes to it."""
    make = catalogue.maker_of(Plan(target=name))
    stage = {"stage": None} if catalogue.TARGETS[name].is_virtual else {}
    inspect.signature(make).bind(Plan(target=name), tmp_path, random.Random(1), **stage)


@pytest.mark.parametrize("name", ["processes", "containers"])
def test_whether_the_controller_is_first_is_true_or_false(name: str) -> None:
    """Another value of ``controller_first`` is refused by the targets that have the option."""
    target = catalogue.TARGETS[name]
    plan = Plan(options={**target.options, "controller_first": "broker-1"})
    assert target.refuse(plan) == "options: controller_first=broker-1: must be true or false"
    assert target.refuse(Plan(options={**target.options, "controller_first": True})) is None
