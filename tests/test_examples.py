"""The examples run, and print what their readers expect."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LINES_MAX = 80

PRINTED = {
    "01_one_broker.py": ["offset 0: hello 0", "offset 9: hello 9"],
    "02_find_lost_write.py": ["acknowledged:\nINVALID  lost-write 1", "in doubt:\nVALID"],
    "03_write_a_checker.py": [
        "hole in x-0 at offset 2: no process acknowledged or read offsets 2 to 4"
    ],
    "04_write_a_nemesis.py": ["3 of 3 freezes measured", "heal ['broker-1']"],
    "08_model_of_your_own.py": ["valid: False", "- no permit was free"],
    "05_judge_again.py": ["contract:\nINVALID  lost-write 1", "allowed: lost-write 1", "bytes"],
}


ELSEWHERE = {"06_compose.py": "tests/test_compose.py"}
"""Examples that another test runs, which has what they need."""


def test_each_is_known() -> None:
    """Every example is in this test, and is short enough to be read."""
    assert sorted([*PRINTED, *ELSEWHERE]) == sorted(path.name for path in EXAMPLES.glob("*.py"))
    for name in [*PRINTED, *ELSEWHERE]:
        assert len((EXAMPLES / name).read_text().splitlines()) <= LINES_MAX, name


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_it_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    """``python examples/…`` prints what the example promises."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for words in PRINTED[name]:
        assert words in done.stdout
