import pytest

from broker_impl.coordinator.groups import states
from broker_impl.coordinator.groups.states import State

E, P, C, S, D = State.EMPTY, State.PREPARING, State.COMPLETING, State.STABLE, State.DEAD

ALLOWED = {
    *((E, P), (S, P), (C, P)),
    *((P, C), (C, S), (P, E)),
    *((E, D), (P, D), (C, D), (S, D)),
}


@pytest.mark.parametrize("former", State)
@pytest.mark.parametrize("state", State)
def test_each_pair(former: State, state: State) -> None:
    """Ten of the twenty-five transitions are allowed; no state follows Dead."""
    assert states.may_follow(state, former) == ((former, state) in ALLOWED)
