"""Judgements agree with a judge that tries every order, and stay within their budget."""

from collections.abc import Sequence
from random import Random

import pytest

from bench.oracles import kinds
from bench.oracles.kinds import KINDS
from checkers.linearizability import judging, models
from checkers.linearizability.operations import NEVER, Operation
from checkers.linearizability.search import Illegal, Linearized


@pytest.mark.parametrize("name", KINDS)
def test_small_histories_are_judged_as_by_trying_every_order(name: str) -> None:
    """A linearizable history has an order that explains it; for any other one, none exists."""
    kind, found = KINDS[name], {True: 0, False: 0}
    for seed in range(400):
        rng = Random(f"{name} {seed}")
        operations = kinds.draw(kind, rng, rng.randrange(1, 7))
        wanted = kinds.is_linearizable(kind.model, operations)
        judged = judging.judge(operations, kind.model)
        assert judged.valid is wanted, (seed, operations)
        found[wanted] += 1
        for part in judged.parts:
            if isinstance(part.outcome, Linearized):
                order = part.outcome.order
                assert kinds.is_explained(kind.model, part.operations, order), seed
            elif isinstance(part.outcome, Illegal):
                _check_illegal(kind.model, part.operations, part.outcome)
    assert min(found.values()) >= 10


def _check_illegal(model: models.Model, operations: Sequence[Operation], outcome: Illegal) -> None:
    """The operations that ended before the blocked one are linearizable, and not with it."""
    end = operations[outcome.blocked].end
    before = [
        each if each.end < end else each._replace(end=NEVER)
        for each in operations
        if each.call <= end
    ]
    assert kinds.is_linearizable(model, before)
    assert not kinds.is_linearizable(model, [e for e in operations if e.call <= end])
    assert outcome.refusals
    assert all(isinstance(refusal.why, str) for refusal in outcome.refusals)


def test_a_budget_that_is_used_up_leaves_it_unknown() -> None:
    """The verdict is unknown when steps or memory run out, and says which."""
    operations = [
        *(Operation("write", n, n, NEVER, n) for n in range(40)),
        *(Operation("cas", [n, (7 * n + 3) % 40], 50, NEVER, 100 + n) for n in range(40)),
        Operation("cas", [50, 51], 60, NEVER, 199),
        Operation("read", 51, 200, 201, 200),
    ]
    judged = judging.judge(operations, models.CasRegister(), judging.Budget(steps=3000))
    assert judged.valid == "unknown"
    assert judged.unknown_because == "the search used up its budget of 3,000 steps"
    little = judging.Budget(steps=1_000_000, bytes=1 << 20)
    judged = judging.judge(operations, models.CasRegister(), little)
    assert judged.valid == "unknown"
    assert judged.unknown_because == "the search used up its memory of 1 MiB"


def test_a_hard_key_does_not_hide_an_illegal_one() -> None:
    """Keys take turns, so that a key that is illegal at once is found."""
    hard = [
        *(Operation("write", ["hard", n], n, NEVER, n) for n in range(40)),
        *(Operation("cas", ["hard", [n, (7 * n + 3) % 40]], 50, NEVER, 100 + n) for n in range(40)),
        Operation("cas", ["hard", [50, 51]], 60, NEVER, 199),
        Operation("read", ["hard", 51], 200, 201, 200),
    ]
    easy = [
        *(Operation("write", ["easy", 1], 2 * n, 2 * n + 1, 300) for n in range(100, 250)),
        Operation("read", ["easy", 2], 600, 601, 300),
    ]
    model = models.Keyed(models.CasRegister())
    judged = judging.judge([*hard, *easy], model, judging.Budget(steps=200_000))
    assert judged.valid is False
    (part,) = judged.illegal
    assert part.key == ("easy", None)


def test_large_keys_are_not_searched_for_an_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a monitor has decided about many operations, its conflict is all that is said."""
    operations = [Operation("write", 1, 0, 1), Operation("read", 2, 2, 3)]
    part = judging.judge(operations, models.Register(0)).illegal[0]
    assert part.conflict is not None
    assert isinstance(part.outcome, Illegal)
    monkeypatch.setattr(judging, "EXPLAINED_OPERATIONS", 1)
    part = judging.judge(operations, models.Register(0)).illegal[0]
    assert part.conflict is not None
    assert (part.outcome, part.steps) == (None, 0)
