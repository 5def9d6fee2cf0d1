from typing import Any

import pytest

from checkers.kernels.precommitted import precommitted_reads


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t:+x=a@0|x=a@0", ["1 (1,)"]),
        ("t:+x=a@0|x=b@1 s:x=b@1", []),
        ("t:+x=b@0|y=b@0 t1:+x=a@1 s:y=b@0", []),  # the same value of another partition
        ("t!:+x=a@0|x=a@0", ["1 (1,)"]),  # whatever its outcome
        ("t?:+x=a@0,+x=b@1|x=a@0,x=b@1|x=b@1", ["1 (1,)", "2 (1,)"]),
        ("s:x=a@0 p:x=a@0", []),
        ("t:+x=a@0 t:x=a@0", []),  # another transaction of the same process
    ],
)
def test_precommitted_reads(histories: Any, text: str, found: list[str]) -> None:
    """A transaction does not read its own records."""
    assert [f"{f.value} {f.ops}" for f in precommitted_reads(histories.log(text))] == found
