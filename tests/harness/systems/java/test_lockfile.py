"""Lock files of releases."""

from pathlib import Path

import pytest

from harness.systems.java.coordinates import Coordinates
from harness.systems.java.lockfile import (
    Lock,
    Product,
    UnknownRelease,
    dump,
    load,
    numbers,
)


def product(folder: Path) -> Product:
    return Product("Apache Kafka", folder, "a.lock")


def jars(*texts: str) -> dict[Coordinates, str]:
    return {Coordinates.parse(text): f"{number:064}" for number, text in enumerate(texts)}


def test_written_lock_is_read_as_it_was(tmp_path: Path) -> None:
    """A lock survives writing and reading, with its jars sorted."""
    lock = Lock(product(tmp_path), "1.0", jars("b:b:1", "a:a:1:linux"))
    (tmp_path / "1.0.toml").write_text(dump(lock))
    assert load("1.0", product(tmp_path)) == lock
    assert [jar.group for jar in load("1.0", product(tmp_path)).sha256] == ["a", "b"]


def test_equal_file_names_are_rejected() -> None:
    """Two jars with the same file name would overwrite each other, so no lock has them."""
    assert "b:a:2" in dump(Lock(product(Path()), "1.0", jars("a:a:1", "b:a:2")))
    with pytest.raises(ValueError, match="same file name"):
        dump(Lock(product(Path()), "1.0", jars("a:a:1", "b:a:1")))


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.10.2.2", (0, 10, 2, 2)), ("4.1.0-rc1", (4, 1, 0)), ("4.2.0-SNAPSHOT", (4, 2, 0)),
     ("trunk", ())],
)  # fmt: skip
def test_numbers(version: str, expected: tuple[int, ...]) -> None:
    """Versions are compared by the numbers at their beginning."""
    assert numbers(version) == expected


def test_unknown_release_suggests_pinned_ones(tmp_path: Path) -> None:
    """The error names the nearest release, and lists all that are pinned, oldest first."""
    for version in ("3.9.1", "10.0.0", "0.11.0.3"):
        (tmp_path / f"{version}.toml").write_text("")
    with pytest.raises(UnknownRelease) as caught:
        load("3.9.0", product(tmp_path))
    assert str(caught.value) == (
        "the jars of Apache Kafka 3.9.0 are not pinned; the nearest pinned release is 3.9.1; "
        "pinned: 0.11.0.3, 3.9.1, 10.0.0"
    )
    with pytest.raises(UnknownRelease, match=r"are not pinned; pinned: 0\.11"):
        load("../x", product(tmp_path))
