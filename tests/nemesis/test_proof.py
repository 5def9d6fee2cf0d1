"""Probes are repeated until somebody tells something."""

import pytest

from nemesis import proof

pytestmark = pytest.mark.usefixtures("impatient")


async def told_after(silences: int) -> tuple[int, list[bool | None]]:
    """How often was probed, and what was told in the end."""
    probed = 0

    async def probe() -> list[bool | None]:
        nonlocal probed
        probed += 1
        return [None, None if probed <= silences else False]

    answers = await proof.told(probe)
    return probed, list(answers)


async def test_first_answer_ends_it() -> None:
    """One answer is enough, whatever it says."""
    assert await told_after(0) == (1, [None, False])
    assert await told_after(2) == (3, [None, False])


async def test_silence_is_told_in_the_end() -> None:
    """When nobody ever answers, that is what is told."""
    assert await told_after(100) == (proof.TRIES, [None, None])
