"""Which plans a corpus keeps, and how often it chooses each of them."""

import random
from collections import Counter

from harness.app.search.guided.corpus import RUNS_MAX, Corpus, Reached, State, Trace, reached
from model.plan import Plan


def _trace(*phases: tuple[str, float, tuple[int, ...]], parent: int | None = None) -> Trace:
    return Trace(Plan(seed=len(phases)), tuple(Reached(*each) for each in phases), parent)


def test_a_state_is_a_branch_in_a_phase() -> None:
    """The same branch counts again in another phase, and once for a phase that returns."""
    corpus = Corpus()
    corpus.add(1, _trace(("", 0.0, (4,)), ("kill", 6.0, (4,)), ("kill", 9.0, (4, 5))))
    assert corpus.runs == {State("", 4): 1, State("kill", 4): 1, State("kill", 5): 1}
    assert corpus.entries[1].states[State("kill", 4)] == 6.0
    assert corpus.entries[1].states[State("kill", 5)] == 9.0


def test_a_run_without_rare_states_is_counted_and_not_kept() -> None:
    """A state that many runs have reached says nothing about a plan."""
    corpus = Corpus()
    for number in range(RUNS_MAX + 1):
        corpus.add(number, _trace(("", 0.0, (4,))))
    assert list(corpus.entries) == [0, 1, 2]
    assert corpus.size == (3, 1)


def test_plans_with_states_of_their_own_are_chosen_more_often() -> None:
    """The weight of a plan decreases with the runs that reach its states, and with its changes."""
    corpus = Corpus()
    corpus.add(1, _trace(("", 0.0, (1, 2))))
    corpus.add(2, _trace(("", 0.0, (1,))))
    rng = random.Random(7)
    drawn = Counter(entry.number for entry in (corpus.choose(rng) for _ in range(600)) if entry)
    assert drawn[1] > 4 * drawn[2] > 0

    for number in range(3, 13):
        corpus.add(number, _trace(("", 0.0, (1, 2)), parent=1))
    assert corpus.entries[1].changes == 10
    assert corpus.weight(corpus.entries[1]) < corpus.weight(corpus.entries[3])


def test_the_moment_is_that_of_a_rare_state() -> None:
    """States that other runs reach as well are drawn less often."""
    corpus = Corpus()
    corpus.add(1, _trace(("", 0.0, (1,)), ("kill", 6.0, (2,))))
    corpus.add(2, _trace(("", 0.0, (1,))))
    rng = random.Random(7)
    drawn = Counter(corpus.moment(corpus.entries[1], rng) for _ in range(300))
    assert drawn[6.0] > 3 * drawn[0.0] > 0


def test_an_empty_corpus_chooses_nothing() -> None:
    """The first runs of a search have drawn plans."""
    assert Corpus().choose(random.Random(1)) is None


def test_only_some_probes_are_part_of_a_trace() -> None:
    """A phase has one byte for each probe."""
    phases = [("", 0.0, bytes([1, 0, 1])), ("kill", 2.5, bytes([0, 1, 1]))]
    assert reached(phases, (1, 2)) == (Reached("", 0.0, (2,)), Reached("kill", 2.5, (1, 2)))
