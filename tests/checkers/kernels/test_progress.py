import dataclasses
from typing import Any

import pytest

from checkers.kernels.progress import stuck_groups
from checkers.kernels.rows import Band

SECOND = 1_000_000_000
SENDS = "s:x-0=a@0,x-0=b@1 p8:x-0=a@0,x-0=b@1 "
JOINED = "m1:x p1:^x-0@0#1|x-0=a@0 "


@pytest.mark.parametrize(
    ("text", "stuck"),
    [
        (SENDS + JOINED + "z:40 p1:", True),
        (SENDS + JOINED + "z:20 p1:", False),
        (SENDS + JOINED + "z:40 p1!:", False),  # nobody was told that there is nothing
        (SENDS + JOINED + "z:40 p1:x-0=b@1 z:40 p1:", False),
        (SENDS + JOINED + "p1:x-0=b@1 z:40 p1:", False),  # all was given out before
        (SENDS + JOINED + "k1:x-0@2 z:40 p1:", False),  # … or is said to have been
        (SENDS + JOINED + "z:40 m2:x p1:", False),  # somebody has only just come
        (SENDS + JOINED + "z:40 m2:x z:40 p1:", True),
        (SENDS + JOINED + "m2:x z:40 l2: p1:", False),
        (SENDS + "m1:y p1:^y-0@0#1| z:40 p1:", False),  # of other topics
        ("s:x-0=a@0,x-0=b@1 " + JOINED + "z:40 p1:", False),  # perhaps nobody can read it
        (JOINED.replace("x-0=a@0", "") + "z:40 " + SENDS + "p1:", False),  # it was sent just now
    ],
)
def test_a_group_that_gives_nobody_anything(histories: Any, text: str, stuck: bool) -> None:
    """Although somebody asks for long, and there is what others could read."""
    log = histories.log(text, "x-0")
    found = stuck_groups(log)
    assert bool(found) == stuck
    if found:
        assert found[0].also[0] >= 40
    late = Band(1, 0, 40 * SECOND)
    assert stuck_groups(dataclasses.replace(log, faults=(late,))) == [] or "m2" in text
    assert stuck_groups(dataclasses.replace(log, faults=(Band(1, 0, None),))) == []
