"""Questions are asked by threads of their own, about the partitions that clients write."""

import random

import pytest

from harness.app import plan_resolution
from harness.app.refused import Refused
from model.generator import Context, Invocation, Wait
from model.plan import Plan
from workloads import asking


def context() -> Context:
    """Return the context of one idle asking process."""
    return Context(1.0, (asking.FIRST_PROCESS,), 1, random.Random(1))


def test_questions_are_about_known_partitions() -> None:
    """Nothing is asked before a partition is known; then each kind of question is asked."""
    keys: dict[str, None] = {}
    questions = asking.Questions(keys)
    waiting, _ = questions.op(context())
    assert isinstance(waiting, Wait)
    keys["t-0"] = None
    rng = random.Random(1)
    asked = set()
    for _ in range(300):
        answer, _ = questions.op(Context(1.0, (asking.FIRST_PROCESS,), 1, rng))
        assert isinstance(answer, Invocation)
        [[name, key, *question]] = answer.value
        assert (name, key) == (answer.f, "t-0")
        asked.add(question[0] if question else name)
    assert asked == set(asking.QUESTIONS) - {asking.MOVE}


def test_ends_of_topics_that_come_again_are_not_compared() -> None:
    """An answer about the next topic of that name would be taken for one about this one."""
    questions = asking.Questions({"t-0": None}, asking.WATERMARKS, watches=False)
    answer, _ = questions.op(context())
    assert isinstance(answer, Invocation)
    assert answer.value == [["ask", "t-0", "list-offsets"]]


def test_replicas_move_only_between_several_directories() -> None:
    """With one data directory for each broker the order is not drawn, and refused by name."""
    answer, _ = asking.Questions({"t-0": None}, asking.MOVE, moves=True).op(context())
    assert isinstance(answer, Invocation)
    assert answer.value == [["ask", "t-0", asking.MOVE]]
    plan = Plan(target="simulated", nemesis=("none",), options={asking.ONLY: asking.MOVE})
    with pytest.raises(Refused, match="needs brokers with several data directories"):
        plan_resolution.resolve(plan)


def test_a_plan_may_ask_one_question_only() -> None:
    """The option selects it."""
    answer, _ = asking.Questions({"t-0": None}, "read").op(context())
    assert isinstance(answer, Invocation)
    assert answer.value == [["ask", "t-0", "read"]]


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_processes_have_numbers_of_their_own(threads: int) -> None:
    """The first number is a multiple of the number of threads, and above all others."""
    first = asking.first_process(threads)
    assert first >= asking.FIRST_PROCESS
    assert first % threads == 0


def test_unknown_questions_are_refused() -> None:
    """A plan that asks only something unknown would ask nothing."""
    plan = Plan(target="simulated", nemesis=("none",), options={asking.ONLY: "nothing"})
    with pytest.raises(Refused, match="asks_only=nothing"):
        plan_resolution.resolve(plan)
