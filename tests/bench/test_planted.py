"""Each class of anomaly is found by its name where it was planted."""

from random import Random

import pytest

from bench.oracles import planted
from bench.oracles.transactions import LIST, PREDICATE, REGISTER, SET
from checkers import objects

CASES = [
    pytest.param(anomaly, model, id=f"{model}-{anomaly.name}-{number}")
    for model in (LIST, SET, REGISTER, PREDICATE)
    for number, anomaly in enumerate(planted.of_model(model))
]


@pytest.mark.parametrize(("anomaly", "model"), CASES)
def test_each_is_found(anomaly: planted.Anomaly, model: str) -> None:
    """The anomaly is found, whatever its keys are and whatever else runs."""
    consistency, assume = planted.OPTIONS[anomaly.variant]
    for seed in range(5):
        found = objects.check(
            planted.history(anomaly, model, Random(seed)),
            model,
            consistency=consistency,
            assume=assume if model == REGISTER else (),
        )
        assert found.valid is False
        assert anomaly.name in found.anomalies


def test_every_class_is_planted() -> None:
    """All classes of cycles are planted, by items and by predicates, and in each variant."""
    names = {each.name for each in planted.ANOMALIES}
    classes = ("G1c", "G-single", "G-single-item", "G-nonadjacent", "G-nonadjacent-item", "G2-item")
    wanted = {f"{name}{order}" for name in classes for order in ("", "-process", "-realtime")}
    assert wanted | {"G0", "G0-process", "G0-realtime", "G2", "G1a", "G1b", "lost-update"} <= names
