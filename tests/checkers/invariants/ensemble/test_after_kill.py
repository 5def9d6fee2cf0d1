import pytest

from checkers.invariants.ensemble.after_kill import (
    EVERY,
    HeldHistory,
    HistoriesAfterKill,
    KnownHistory,
    difference,
)
from checkers.invariants.step import Stepper
from tests.checkers.invariants.streams import cluster, state

HELD = KnownHistory(0x100000007, 2, 1, 77)


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        (HELD, None),
        (HELD._replace(last_zxid=0x100000006), "would end at 0x100000006"),
        (HELD._replace(last_zxid=0x100000008), "would end at 0x100000008"),
        (HELD._replace(accepted_epoch=1), "with 1 and 1"),
        (HELD._replace(current_epoch=0), "with 2 and 0"),
        (HELD._replace(digest=78), "it would have other nodes or sessions"),
        ("damaged", "it would not load its history"),
    ],
)
@pytest.mark.parametrize("when", ["kill", "loss of power"])
def test_the_end_of_a_server_changes_nothing(
    loaded: KnownHistory | str, why: str | None, when: str
) -> None:
    """A server has answered for all of its log, its epochs and its state."""
    history = HeldHistory(HELD, loaded, HELD) if when == "kill" else HeldHistory(HELD, HELD, loaded)
    found = difference(history)
    assert (found is None) == (why is None)
    assert found is None or (why is not None and why in found and f"after a {when}" in found)


def test_a_state_that_lacks_logged_transactions_is_not_compared() -> None:
    """A start applies the whole log, committed or not."""
    held = HELD._replace(digest=None)
    assert difference(HeldHistory(held, HELD, HELD)) is None


def test_servers_are_judged_now_and_then_and_at_the_end() -> None:
    """Loading a history takes as long as the history is."""
    asked: list[int] = []

    def reload() -> dict[int, HeldHistory]:
        asked.append(1)
        return {2: HeldHistory(HELD, "damaged", HELD)}

    fold, stepper = HistoriesAfterKill(reload), Stepper()
    found = [
        violation
        for _ in range(EVERY)
        for violation in fold.step(stepper.step(cluster(state(), {})))
    ]
    assert len(asked) == len(found) == 1
    assert found[0].invariant == "zk-same-after-kill"
    assert "server 2" in found[0].why
    assert list(fold.step(stepper.step(cluster(state(), {}), is_last=True)))
    assert len(asked) == 2
