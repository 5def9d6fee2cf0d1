from typing import Any

import pytest

from checkers.kernels.offsets import inconsistent_offsets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1", []),
        ("s:x=a@7 s1:x=b@7", ["7 (1, 2) ack"]),
        ("s:x=a@7 s1:x=b p:x=b@7", ["7 (1, 2) ack"]),
        ("s:x=a s1:x=b p:x=b@7 p2:x=a@7", ["7 (1, 2) read"]),  # two readers disagree
        ("s?:x=a@0 s1:x=b@0", []),  # a claim in doubt
        ("s?:x=a@0,y=a s1:x=b@0 p:y=a@5", ["0 (1, 2) ack"]),  # proven by the read of y
        ("s:x=a@0 s1:y=b@0 p:x=a@0,y=b@0", []),
    ],
)
def test_inconsistent_offsets(histories: Any, text: str, found: list[str]) -> None:
    """An offset with two values is inconsistent; the variant says whether two were read."""
    results = inconsistent_offsets(histories.log(text))
    assert [f"{f.offset} {f.also} {f.variant}" for f in results] == found
