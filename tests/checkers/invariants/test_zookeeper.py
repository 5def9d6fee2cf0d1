import pytest
from msgspec.structs import replace

from model.snapshot import PartitionState, ZooKeeperState
from tests.checkers.invariants.streams import KEY, broker, cluster, state, violated


def states(*stream: PartitionState) -> list[str]:
    """Violations in snapshots of ZooKeeper alone."""
    return violated(*(cluster(one, {}) for one in stream))


@pytest.mark.parametrize(
    ("isr", "leader", "names"),
    [
        ((1, 2), 1, []),
        ((2,), -1, []),  # no member is alive
        ((), -1, ["isr-within-replicas"]),
        ((2, 3), 1, ["isr-within-replicas"]),
        ((1, 4), 1, ["isr-within-replicas"]),
    ],
)
def test_an_isr_holds_its_leader_and_only_replicas(
    isr: tuple[int, ...], leader: int, names: list[str]
) -> None:
    """An ISR holds its leader, and only assigned replicas (R14, KAFKA-5083)."""
    assert states(state(leader, isr=isr)) == names


@pytest.mark.parametrize(
    ("after", "names"),
    [
        (state(1, 3, version=8), []),
        (state(1, 3, (1, 2), version=9), []),
        (state(2, 4, version=9), []),
        (state(1, 5, version=11), []),
        (state(1, 3, (1, 2), version=8), ["state-version"]),
        (state(1, 3, version=7), ["state-version"]),
        (state(1, 2, version=9), ["leader-epoch-monotone"]),
        (state(2, 3, version=9), ["leader-epoch-monotone"]),
    ],
)
def test_a_state_changes_by_conditional_writes(after: PartitionState, names: list[str]) -> None:
    """A partition state changes by conditional writes (R14, E1); it was leader 1 in epoch 3,
    version 8."""
    assert states(state(1, 3, version=8), after) == names


MOVE = state(1, 3, (1, 2), version=5, replicas=(1, 2, 3), adding=(3,), removing=(1,))
MOVED = state(2, 4, (2, 3), version=7, replicas=(2, 3))


@pytest.mark.parametrize(
    ("stream", "names"),
    [
        ((MOVE, MOVED), []),
        ((MOVE, replace(MOVED, isr=(2,))), ["moved-when-in-sync"]),
        # It was in the ISR, and died before the assignment was written.
        ((MOVE, replace(MOVE, isr=(1, 2, 3), version=6), replace(MOVED, isr=(2,))), []),
        # It was in the ISR of an earlier reassignment.
        (
            (
                replace(MOVE, isr=(1, 2, 3)),
                replace(MOVE, isr=(1, 2), version=6, adding=(), replicas=(1, 2)),
                replace(MOVE, version=6),
                replace(MOVED, isr=(2,)),
            ),
            ["moved-when-in-sync"],
        ),
        # It began and completed between the snapshots.
        ((replace(MOVE, adding=(), removing=(), replicas=(1, 2)), MOVED), []),
        (
            (
                replace(MOVE, adding=(), removing=(), replicas=(1, 2)),
                replace(MOVED, isr=(2,), version=6),
            ),
            ["moved-when-in-sync"],
        ),
        # It may have been in the ISR between the snapshots.
        ((MOVE, replace(MOVED, isr=(2,), version=8)), []),
        # The reassignment was cancelled, or another topic of this name was created.
        ((MOVE, replace(MOVED, isr=(2,), replicas=(1, 2))), []),
        ((MOVE, replace(MOVED, isr=(2,), birth=9)), []),
        # Only a replica is removed, and one that stays is not in sync.
        (
            (
                state(1, 3, (1, 2), version=5, removing=(2,)),
                state(1, 4, (1,), version=6, replicas=(1, 3)),
            ),
            ["moved-when-in-sync"],
        ),
    ],
)
def test_replicas_are_given_up_once_the_others_are_in_sync(
    stream: tuple[PartitionState, ...], names: list[str]
) -> None:
    """A replica that stays was in the ISR at some time of the reassignment (KIP-455)."""
    assert states(*stream) == names


def controllers(*stream: tuple[int, int]) -> list[str]:
    """Violations of these pairs of holder and epoch in ZooKeeper."""
    return violated(
        *(
            cluster(ZooKeeperState(partitions={}, controller=holder, controller_epoch=epoch), {})
            for holder, epoch in stream
        )
    )


def test_controller_epochs_rise_and_have_one_holder() -> None:
    """Controller epochs rise and have one holder each, even if the holder resigns and returns."""
    assert controllers((1, 1), (-1, 1), (2, 2), (1, 3)) == []
    assert controllers((1, 1), (2, 1)) == ["one-controller-per-epoch"]
    assert controllers((1, 2), (1, 1)) == ["controller-epoch-monotone"]


def test_two_brokers_may_take_themselves_for_the_controller_in_different_epochs_only() -> None:
    """Two brokers may act as the controller at once only in different epochs."""
    zookeeper = ZooKeeperState(partitions={}, controller=2, controller_epoch=2)

    def both(one: int, other: int) -> list[str]:
        brokers = {1: broker(None, term=one), 2: broker(None, term=other)}
        return violated(cluster(zookeeper, brokers))

    assert both(1, 2) == []
    assert both(2, 2) == ["one-controller-per-epoch"]
    assert both(3, 2) == ["controller-epoch-monotone"]


def test_nobody_obeys_an_epoch_that_was_not_given_out_or_is_past() -> None:
    """No broker obeys a controller epoch that is past or was not assigned (E2), except across a
    restart."""
    zookeeper = ZooKeeperState(partitions={}, controller=2, controller_epoch=2)

    def obeyed(*epochs: int, lives: tuple[int, ...] = (1, 1)) -> list[str]:
        return violated(
            *(
                cluster(zookeeper, {3: broker(None, life=life, controller_epoch=epoch)})
                for life, epoch in zip(lives, epochs, strict=False)
            )
        )

    assert obeyed(1, 2) == []
    assert obeyed(2, 1) == ["controller-epoch-monotone"]
    assert obeyed(2, -1, lives=(1, 2)) == []
    assert obeyed(3) == ["controller-epoch-monotone"]


def test_no_state_is_of_a_controller_to_come() -> None:
    """No partition state has a controller epoch above /controller_epoch."""
    for epoch, names in ((2, []), (3, ["controller-epoch-monotone"])):
        zookeeper = ZooKeeperState(
            partitions={KEY: state(controller_epoch=epoch)}, controller_epoch=2
        )
        assert violated(cluster(zookeeper, {})) == names
