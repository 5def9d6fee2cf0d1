"""Names of topics."""

import pytest

from broker_impl.controller.topics import collision, name_error


@pytest.mark.parametrize("name", ["t", "a.b-c_D9", "x" * 249, "...", "__consumer_offsets"])
def test_good_names(name: str) -> None:
    """Letters, digits, '.', '_' and '-', up to 249 of them."""
    assert name_error(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "ä", "a/b", "a\n"])
def test_bad_names(name: str) -> None:
    """Each has a reason."""
    assert name_error(name)


@pytest.mark.parametrize(
    ("name", "existing", "other"),
    [
        ("a.b", ["a_b"], "a_b"),
        ("a_b", ["x", "a.b"], "a.b"),
        ("a.b", ["a.b"], None),  # itself
        ("a.b", ["a-b", "ab"], None),
    ],
)
def test_collisions(name: str, existing: list[str], other: str | None) -> None:
    """Names that differ only in '.' and '_' are one and the same to metrics."""
    assert collision(name, existing) == other
