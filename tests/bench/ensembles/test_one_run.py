import pytest

from bench.ensembles.campaign import Summary, shape_of
from bench.ensembles.one_run import drawn, run
from bench.ensembles.rig import Shape


@pytest.mark.slow
@pytest.mark.parametrize(("voters", "observers"), [(3, 0), (5, 1)])
def test_a_correct_ensemble_is_correct(voters: int, observers: int) -> None:
    """Drawn faults change the leader several times, and no check finds anything."""
    summary = Summary()
    for seed in (1, 2):
        summary.add(run(seed, shape_of(seed, voters, observers), drawn(6.0)))
    assert not summary.names
    assert summary.leader_changes >= 2
    assert summary.acknowledged > 100


@pytest.mark.slow
def test_a_run_depends_on_its_seed_alone() -> None:
    """The same seed gives the same events, another seed others."""
    first, again, other = (run(seed, Shape(), drawn(2.0)) for seed in (5, 5, 6))
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert (first.operations, first.epochs) == (again.operations, again.epochs)
