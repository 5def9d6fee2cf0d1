"""Drawings as files: those of the documentation are what the tool makes from the examples."""

import dataclasses
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from checkers import objects, recorded
from harness.app.objects_page import drawings, sections
from tests.checkers.test_aggregates import done, events

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = {
    "lost-update": "list-append",
    "write-skew": "list-append",
    "long-fork": "list-append",
    "stale-read": "register",
    "fifo-violation": "fifo-queue",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_pictures_of_the_documentation(name: str, tmp_path: Path, repository: Path) -> None:
    """Each one is made byte for byte from its example (``make pictures``)."""
    history = recorded.read(repository / "examples" / "histories" / f"{name}.edn")
    [made] = drawings.write(tmp_path, objects.judged(history.events, EXAMPLES[name]))
    assert made.read_bytes() == (repository / "docs" / "pictures" / f"{name}.svg").read_bytes()


def test_a_file_stands_alone(tmp_path: Path) -> None:
    """It is XML with its own style and background, and texts of the history are no markup."""
    key = "<script>&\"'"
    said = [*done("write", [key, 1]), *done("write", [key, 2]), *done("read", None, [key, 1])]
    [made] = drawings.write(tmp_path / "new", objects.judged(events(*said), "register", keyed=True))
    assert made.name == "script-timeline.svg"
    root = ET.fromstring(made.read_text())
    assert root.tag == f"{SVG}svg"
    assert root.find(f"{SVG}style") is not None
    assert not list(root.iter("script"))
    assert "http" not in made.read_text().replace("http://www.w3.org/2000/svg", "")


def test_each_key_has_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys whose names are the same as names of files have different files."""
    said = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
    judged = objects.judged(events(*said), "register")
    [one] = sections.keys(judged)
    several = [dataclasses.replace(one, name=name) for name in ("a/b", "a b", "??")]
    monkeypatch.setattr(sections, "keys", lambda judged: several)
    names = [path.name for path in drawings.write(tmp_path, judged)]
    assert names == ["a-b-timeline.svg", "a-b-timeline-2.svg", "key-timeline.svg"]


def test_a_valid_history_has_none(tmp_path: Path) -> None:
    """The folder is made, and it is empty."""
    judged = objects.judged(events(*done("write", 1)), "register")
    assert drawings.write(tmp_path / "empty", judged) == []
    assert (tmp_path / "empty").is_dir()


def test_elements_can_be_reached_by_keyboard(tmp_path: Path) -> None:
    """Each operation, transaction and step has a place in the order of the tab key, and a name."""
    said = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
    [made] = drawings.write(tmp_path, objects.judged(events(*said), "register"))
    bars = [
        group
        for group in ET.fromstring(made.read_text()).iter(f"{SVG}g")
        if group.get("tabindex") is not None
    ]
    assert len(bars) == 3
    assert all(bar.get("role") == "img" and bar.get("aria-label") for bar in bars)
