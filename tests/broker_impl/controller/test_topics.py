"""The names that topics may have."""

import pytest

from broker_impl.controller.topics import collision, name_error


@pytest.mark.parametrize("name", ["t", "a.b-c_D9", "x" * 249, "...", "__consumer_offsets"])
def test_good_names(name: str) -> None:
    """Valid names have up to 249 letters, digits, '.', '_' and '-'."""
    assert name_error(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n"])
def test_bad_names(name: str) -> None:
    """Each invalid name is refused with a reason."""
    assert name_error(name)


@pytest.mark.parametrize(
    ("name", "existing", "other"),
    [
        ("a.b", ["a_b"], "a_b"),
        ("a_b", ["x", "a.b"], "a.b"),
        ("a.b", ["a.b"], None),  # the same topic
        ("a.b", ["a-b", "ab"], None),
    ],
)
def test_collisions(name: str, existing: list[str], other: str | None) -> None:
    """Names that differ only in '.' and '_' collide, because their metrics have the same name."""
    assert collision(name, existing) == other
