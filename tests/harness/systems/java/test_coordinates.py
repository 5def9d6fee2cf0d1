"""The coordinates of jars."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.java.coordinates import Coordinates

PARTS = st.text("aZ09_.-", min_size=1)


@given(st.builds(Coordinates, PARTS, PARTS, PARTS, st.just("") | PARTS))
def test_text_is_parsed_as_what_it_was(jar: Coordinates) -> None:
    """The text of coordinates is parsed as the same coordinates."""
    assert Coordinates.parse(str(jar)) == jar


@pytest.mark.parametrize("text", ["", "a:b", "a:b:1:c:d", "a:b:<1>", "a:b:", "a:../b:1", "a:b:1\n"])
def test_other_text_is_rejected(text: str) -> None:
    """Text is rejected that has too few or too many parts, or characters of XML and paths."""
    with pytest.raises(ValueError, match="is not group:artifact:version"):
        Coordinates.parse(text)


@pytest.mark.parametrize(
    ("path", "jar", "name"),
    [
        ("org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar", "org.slf4j:slf4j-api:1.7.36",
         "slf4j-api-1.7.36.jar"),
        ("io/netty/netty/4.1/netty-4.1-linux-x86_64.jar", "io.netty:netty:4.1:linux-x86_64",
         "netty-4.1-linux-x86_64.jar"),
    ],
)  # fmt: skip
def test_path_in_a_repository_has_all_parts(path: str, jar: str, name: str) -> None:
    """The path in a repository gives the coordinates; the file name does not contain the group."""
    found = Coordinates.of_path(PurePosixPath(path))
    assert str(found) == jar
    assert found.file_name == name
