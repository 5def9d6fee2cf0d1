"""A target offers the packages whose capabilities the class of its clusters has."""

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
