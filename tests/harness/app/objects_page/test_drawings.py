"""Drawings are written as SVG files, each complete in itself."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from checkers import objects
from harness.app import check_objects
from harness.app.objects_page import drawings
from tests.checkers.test_aggregates import done, events

COMMAND = re.compile(r"^\$ faultline check (\S+) --model (\S+) --pictures docs/pictures$", re.M)
STALE = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_pictures_of_the_documents(repository: Path, tmp_path: Path) -> None:
    """The commands in docs/pictures.md draw exactly the pictures that it shows, and ``make
    pictures`` runs the same commands."""
    page = (repository / "docs" / "pictures.md").read_text()
    commands = COMMAND.findall(page)
    for path, model in commands:
        request = check_objects.Request(model, pictures=tmp_path)
        check_objects.judge_all([str(repository / path)], request, lambda _: None)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = {path.name: path.read_bytes() for path in (repository / "docs/pictures").iterdir()}
    assert len(commands) == len(drawn) == 5
    assert drawn == committed
    assert sorted(re.findall(r"\(pictures/(.*?)\)", page)) == sorted(drawn)
    (made,) = re.findall(r"^DRAWN := ((?:.*\\\n)*.*)", (repository / "Makefile").read_text(), re.M)
    listed = made.replace("\\\n", " ").split()
    assert listed == [f"{Path(path).stem}:{model}" for path, model in commands]


def test_a_picture_stands_alone(tmp_path: Path) -> None:
    """A picture is XML with its own style and background, loads nothing, and says below why the
    marked operation has no place."""
    (path,) = drawings.write(tmp_path, "a history", objects.judged(events(*STALE), "register"))
    assert path.name == "a-history-operations.svg"
    text = path.read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert len(root.findall(f"{SVG}style")) == 1
    assert root[1].get("class") == "ground"
    assert "@import" not in text
    assert "url(" not in text
    assert text.count("http") == 1
    captions = [
        each.text or "" for each in root.iter(f"{SVG}text") if each.get("class") == "caption"
    ]
    assert "it read 1, and the register held 2" in " ".join(captions)
    reached = [each for each in root.iter(f"{SVG}g") if each.get("tabindex") == "0"]
    assert [each.get("role") for each in reached] == ["img"] * 3
    assert all(each.get("aria-label") and each.find(f"{SVG}title") is not None for each in reached)


@pytest.mark.parametrize(
    "key", ["<a href='x'>&\"", "\x00\x1b[2J\ud800\ufffe", "../" * 90, "鍵" * 90, ""]
)
def test_hostile_keys(key: str, tmp_path: Path) -> None:
    """Any key makes a file in the folder, which is XML."""
    said = [(p, t, f, [key, v]) for p, t, f, v in STALE]
    (path,) = drawings.write(tmp_path, "h", objects.judged(events(*said), "register", keyed=True))
    assert [*tmp_path.iterdir()] == [path]
    label = ElementTree.fromstring(path.read_text()).get("aria-label")
    assert label is not None
    assert label.startswith("Operations of key ")


def test_names_of_files(tmp_path: Path) -> None:
    """Keys with the same letters have different files; a valid history has none."""
    said = [(p, t, f, [key, v]) for key in ("a b", "a-b", "a/b") for p, t, f, v in STALE]
    judged = objects.judged(events(*said), "register", keyed=True)
    found = [path.name for path in drawings.write(tmp_path, "h", judged)]
    assert found == ["h-key-a-b.svg", "h-key-a-b-2.svg", "h-key-a-b-3.svg"]
    assert drawings.write(tmp_path, "h", objects.judged(events(*STALE[:4]), "register")) == []


def test_pixels() -> None:
    """Lengths have at most one digit after the point, so that files are the same everywhere."""
    assert [drawings.pixels(length) for length in (1.0, 1.25, 1 / 3)] == ["1", "1.2", "0.3"]
