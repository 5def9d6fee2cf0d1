import pytest

from model.snapshot import BrokerState
from tests.checkers.invariants.streams import KEY, broker, cluster, shown_as, state, violated


def views(*stream: BrokerState) -> list[str]:
    """Violations in snapshots of one broker that has no replica."""
    return violated(*(cluster(state(epoch=9), {1: one}) for one in stream))


def telling(epoch: int | None, life: int = 1) -> BrokerState:
    shown = {} if epoch is None else {KEY: shown_as(state(epoch=epoch))}
    return broker(None, life, shown=shown)


@pytest.mark.parametrize(
    ("stream", "names"),
    [
        ((telling(3), telling(3), telling(5)), []),
        ((telling(3), telling(2)), ["metadata-epoch-monotone"]),
        ((telling(3), telling(2, life=2)), []),  # a restarted broker has no metadata at first
        ((telling(None), telling(2)), []),
        ((telling(3), telling(None), telling(4)), []),
    ],
)
def test_what_clients_are_told_never_goes_back(
    stream: tuple[BrokerState, ...], names: list[str]
) -> None:
    """The leader epoch that a broker reports to clients never goes back between two starts
    (KAFKA-7738)."""
    assert views(*stream) == names


def test_another_topic_of_the_same_name_begins_anew() -> None:
    """A topic that was ever deleted is not checked: one of the same name begins with epoch 0."""
    again = state(epoch=0, birth=2)
    stream = (cluster(state(epoch=3), {1: telling(3)}), cluster(again, {1: telling(0)}))
    assert violated(*stream) == []
