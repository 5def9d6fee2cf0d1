"""The lattice of consistency models, by a few facts of the literature."""

import pytest

from checkers.isolation import Options, lattice


def test_stronger_models_prohibit_more() -> None:
    """A model prohibits all that the models prohibit which it implies."""
    for model, others in lattice.STRONGER.items():
        for other in others:
            assert lattice.prohibited_by(other) <= lattice.prohibited_by(model)


@pytest.mark.parametrize(
    ("anomaly", "allowed", "prohibited"),
    [
        ("G2-item", "snapshot-isolation", "serializable"),
        ("G-nonadjacent", "consistent-view", "snapshot-isolation"),
        ("G-single", "read-committed", "consistent-view"),
        ("lost-update", "read-committed", "cursor-stability"),
        ("G1a", "read-uncommitted", "read-committed"),
        ("G0-realtime", "serializable", "strict-serializable"),
        ("G0-process", "serializable", "strong-session-serializable"),
    ],
)
def test_border(anomaly: str, allowed: str, prohibited: str) -> None:
    """Each anomaly is allowed by one model and prohibited by the next stronger one."""
    assert anomaly not in lattice.prohibited_by(allowed)
    assert anomaly in lattice.prohibited_by(prohibited)


def test_weakest_models() -> None:
    """Of the models that anomalies rule out, the weakest are named apart from the others."""
    found = lattice.boundary(["G2-item", "G-single"])
    assert found.weakest == ("consistent-view", "repeatable-read")
    assert "serializable" in found.also
    assert lattice.boundary([]) == ((), ())


def test_aliases() -> None:
    """All names of a model prohibit the same."""
    names = ("PL-SS", "strong-serializable", "strict-serializable")
    assert len({lattice.prohibited_by(name) for name in names}) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"consistency": ("serialisable",)}, "'serialisable' is not a consistency model; the"),
        ({"anomalies": ("G3",)}, "'G3' is not an anomaly; the anomalies are G-MSR"),
        ({"additional_graphs": ("clock",)}, "'clock' is not a graph; the graphs are process, rea"),
    ],
)
def test_unknown_names(options: dict[str, tuple[str, ...]], message: str) -> None:
    """An unknown name is refused with a list of the known ones."""
    with pytest.raises(ValueError, match=message):
        Options(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "orders"),
    [
        (Options(), {"realtime"}),
        (Options(("serializable",)), set()),
        (Options(("strong-session-PL-2",)), {"process"}),
        (Options((), ("G0-realtime",)), {"realtime"}),
        (Options((), ("G2-process",)), {"process"}),
        (Options(additional_graphs=("process",)), {"process", "realtime"}),
    ],
)
def test_orders(options: Options, orders: set[str]) -> None:
    """Only the orders that prohibited anomalies need are examined."""
    assert options.orders == orders


def test_every_anomaly_is_implied_by_itself() -> None:
    """The order of anomalies has each one once, and more severe ones first."""
    order = lattice.anomaly_order()
    assert len({*order}) == len(order)
    for at, name in enumerate(order):
        assert name in lattice.implied(name)
        assert not lattice.hidden_by(name) & {*order[:at]}
