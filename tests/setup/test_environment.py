import pytest

from setup.environment import version_of


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("uv 0.13.8 (x86_64-unknown-linux-gnu)", (0, 13, 8)),
        ("toxiproxy-server version 2.12.0", (2, 12, 0)),
        ("toxiproxy-server version git", ()),
        ("", ()),
    ],
)
def test_version_of(text: str, version: tuple[int, ...]) -> None:
    """The first dotted number is the version; no number, no version."""
    assert version_of(text) == version


def test_versions_compare_as_numbers() -> None:
    """0.13 is newer than 0.9."""
    assert version_of("uv 0.13.8") >= version_of("uv 0.9")
