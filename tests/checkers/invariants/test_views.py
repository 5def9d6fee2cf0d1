import pytest

from model.snapshot import BrokerState
from tests.checkers.invariants.streams import KEY, broker, cluster, state, violated


def views(*stream: BrokerState) -> list[str]:
    """Of snapshots of one broker that has no replica."""
    return violated(*(cluster(state(epoch=9), {1: one}) for one in stream))


def telling(epoch: int | None, life: int = 1) -> BrokerState:
    return broker(None, life, told={} if epoch is None else {KEY: epoch})


@pytest.mark.parametrize(
    ("stream", "names"),
    [
        ((telling(3), telling(3), telling(5)), []),
        ((telling(3), telling(2)), ["metadata-epoch-monotone"]),
        ((telling(3), telling(2, life=2)), []),  # it has forgotten, and is told anew
        ((telling(None), telling(2)), []),
        ((telling(3), telling(None), telling(4)), []),
    ],
)
def test_what_clients_are_told_never_goes_back(
    stream: tuple[BrokerState, ...], names: list[str]
) -> None:
    """KAFKA-7738: in one life of a broker."""
    assert views(*stream) == names


def test_another_topic_of_the_same_name_begins_anew() -> None:
    """A topic that was ever deleted is out of sight."""
    again = state(epoch=0, birth=2)
    stream = (cluster(state(epoch=3), {1: telling(3)}), cluster(again, {1: telling(0)}))
    assert violated(*stream) == []
