import pytest

from broker_impl.coordinator.groups import states
from broker_impl.coordinator.groups.states import GroupStatus

E, P, C, S, D = (
    GroupStatus.EMPTY,
    GroupStatus.PREPARING,
    GroupStatus.COMPLETING,
    GroupStatus.STABLE,
    GroupStatus.DEAD,
)

ALLOWED = {
    *((E, P), (S, P), (C, P)),
    *((P, C), (C, S), (P, E)),
    *((E, D), (P, D), (C, D), (S, D)),
}


@pytest.mark.parametrize("former", GroupStatus)
@pytest.mark.parametrize("state", GroupStatus)
def test_each_pair(former: GroupStatus, state: GroupStatus) -> None:
    """Ten of the twenty-five transitions are allowed; no state follows Dead."""
    assert states.may_follow(state, former) == ((former, state) in ALLOWED)
