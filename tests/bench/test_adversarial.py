"""The adversarial set has valid executions and contradictions, and notices a wrong verdict."""

from random import Random

import pytest

from bench.adversarial import __main__ as adversarial
from bench.adversarial.executions import Shape, generate
from bench.adversarial.judge import Judged
from bench.adversarial.objects import KINDS
from checkers import objects


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spoiled", ["", "impossible", "order"])
def test_executions_are_what_their_shape_says(kind: str, spoiled: str) -> None:
    """An execution is linearizable, unless it was spoiled."""
    for seed in range(8):
        rng = Random(f"{kind} {seed}")
        shape = Shape(kind, rng.randrange(10, 25), 3, rng.choice((0, 0.2)), rng.choice((0, 3)))
        history = generate(shape._replace(spoiled=spoiled), seed)
        assert objects.check(history, KINDS[kind].model).valid is (not spoiled)


def test_a_wrong_verdict_and_a_budget_that_was_exceeded_miss_their_bars() -> None:
    """Each bar compares the figures of all histories."""
    judged = Judged(verdict="True", seconds=1.0, steps=50, growth_mb=10.0, used_up=None)
    right = adversarial.Case(Shape("register", 10, 2), judged)
    wrong = adversarial.Case(Shape("register", 10, 2, spoiled="order"), judged)
    assert all(bar.is_met for bar in adversarial.bars([right], 50, 16))
    assert not adversarial.bars([right, wrong], 50, 16)[0].is_met
    assert not adversarial.bars([right], 49, 16)[1].is_met
