"""Versions are numbers with dots, not older than the oldest one that can be tested."""

import pytest

from harness.systems.java import versions


@pytest.mark.parametrize("text", ["3.4", "3.9.3", "10.0.0"])
def test_a_version_is_read_and_shown(text: str) -> None:
    """A version that is read has the same text again."""
    assert versions.shown(versions.parse(text, (3, 4), "3.9.3", numbers_max=3)) == text


@pytest.mark.parametrize("text", ["", "3", "3.04", "3.4.5.6", "v3.4", "3.4-rc1"])
def test_other_texts_are_refused(text: str) -> None:
    """Too few or too many numbers, leading zeros and letters are no version."""
    with pytest.raises(ValueError, match=r"is not a version such as 3\.9\.3"):
        versions.parse(text, (3, 4), "3.9.3", numbers_max=3)


def test_an_older_version_is_refused() -> None:
    """The error names the oldest version."""
    with pytest.raises(ValueError, match=r"the oldest release that can be tested is 3\.4"):
        versions.parse("3.3.6", (3, 4), "3.9.3", numbers_max=3)
