"""The branches that no run can reach."""

import importlib
import inspect

from harness.app.rules import probes
from harness.app.rules.argued import ARGUED


def test_each_of_them_is_a_branch_of_the_rules() -> None:
    """A branch that the code no longer has is not argued away; each reason is a sentence."""
    for name, reasons in ARGUED.items():
        module_name, function_name = name.split(":")
        module = importlib.import_module(module_name)
        probed = probes.add(inspect.getsource(module), str(module.__file__), 0)
        [function] = [each for each in probed.functions if each.name == function_name]
        there = {f"{branch.text}: {branch.outcome}" for branch in function.branches}
        assert reasons.keys() <= there, name
        assert all(len(reason) > 20 for reason in reasons.values())
