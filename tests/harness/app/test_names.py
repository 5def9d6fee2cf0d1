"""An unknown name is answered with the closest known ones."""

import pytest

from harness.app.names import unknown

MANY = [f"mutant-{number}" for number in range(110)]


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("kil", ["kill", "pause"], "there is no kil; did you mean kill?"),
        ("Send-Poll", ["send_poll", "groups"], "there is no Send-Poll; did you mean send_poll?"),
        ("fire", ["kill", "pause"], "there is no fire; available: kill, pause"),
        ("x", [], "there is no x; available: none"),
        ("local-append", ["ack-on-local-append", "kill"],
         "there is no local-append; did you mean ack-on-local-append?"),
        ("zzz", MANY, "there is no zzz; the list lists all 110"),
    ],
)  # fmt: skip
def test_the_closest_names_are_suggested(name: str, known: list[str], said: str) -> None:
    """Without a close name all are listed, unless they are too many for a line."""
    assert unknown(name, known, "the list") == said


def test_a_line_stays_a_line() -> None:
    """The message stays one short line, however long the name is."""
    assert len(unknown("x" * 100_000, MANY)) < 300
