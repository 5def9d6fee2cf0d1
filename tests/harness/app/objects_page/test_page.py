"""The page about a judgement holds all that it needs, and shows any text as text."""

from pathlib import Path

from checkers import objects
from harness.app.objects_page import page
from tests.checkers.test_aggregates import done, events

STALE = [*done("write", ["<k>", 1]), *done("write", ["<k>", 2]), *done("read", None, ["<k>", 1])]


def rendered(folder: Path, judged: objects.Judged) -> str:
    return page.render(folder / "page.html", "history.edn", judged).read_text()


def test_an_illegal_key(tmp_path: Path) -> None:
    """The key has a section with sentences and a drawing; markup of the history is escaped, and
    nothing is loaded from elsewhere."""
    html = rendered(tmp_path, objects.judged(events(*STALE), "register", keyed=True))
    assert "<h1>INVALID</h1>" in html
    assert "Key &lt;k&gt;" in html
    assert "<k>" not in html
    assert html.count('<g class="bar') == 3
    assert "it read 1, and the register held 2" in html
    assert "http:" not in html
    assert "https:" not in html


def test_promises_of_sessions(tmp_path: Path) -> None:
    """A promise about all keys together has one section."""
    back = [*STALE[:4], *done("read", None, ["<k>", 2], 1), *done("read", None, ["<k>", 1], 1)]
    judged = objects.judged(events(*back), "register", keyed=True, consistency="zookeeper")
    html = rendered(tmp_path, judged)
    assert "<b>session-order</b> 1" in html
    assert html.count('<g class="bar blocked') == 1


def test_other_verdicts(tmp_path: Path) -> None:
    """A valid history, and one that was counted, have a page as well."""
    valid = rendered(tmp_path, objects.judged(events(*STALE[:4]), "register", keyed=True))
    assert "An order of all operations explains every result." in valid
    lost = objects.judged(events(*done("add", 1), *done("read", None, [2])), "set")
    assert "lost: 1 was added" in rendered(tmp_path, lost)
