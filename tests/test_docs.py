"""The documents name what exists: their tables are compared with those of the code."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from broker_impl.api.table import APIS
from checkers import anomalies
from checkers.anomalies import Anomaly, page
from harness.app import catalogue

LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs"]


def pages(repository: Path) -> list[Path]:
    """Every Markdown page for readers."""
    found = [repository / name for name in PAGES]
    return [page for each in found for page in (each.rglob("*.md") if each.is_dir() else [each])]


def test_links_lead_somewhere(repository: Path) -> None:
    """No page links to a missing file."""
    dead = [
        f"{page.relative_to(repository)}: {target}"
        for page in pages(repository)
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("target", catalogue.TARGETS),
        ("workload", catalogue.WORKLOADS),
        ("nemesis", [*catalogue.NEMESES, "all", "none"]),
    ],
)
def test_readme_lists_all_names(option: str, names: list[str], repository: Path) -> None:
    """README lists all names that the command line accepts."""
    (row,) = re.findall(
        rf"^\| `--{option}` \| (.*) \|$", (repository / "README.md").read_text(), re.M
    )
    assert set(re.findall(r"`([\w-]+)`", row)) == set(names)


def test_anomalies_are_those_of_the_table(repository: Path) -> None:
    """docs/anomalies.md has the tables that ``python -m checkers.anomalies.page`` prints."""
    text = (repository / "docs" / "anomalies.md").read_text()
    tables = re.findall(r"^\| id \|.*\n(?:\|.*\n)+", text, re.M)
    assert tables == [page.of_histories(), page.of_zookeeper(), page.of_state()]


@pytest.mark.parametrize(
    ("begin", "end", "selects"),
    [
        ("This applies to", r"\. By default", lambda a: a.excused_by_late_end is not None),
        ("legal except", ", because with", lambda a: not a.is_excused_by_unclean_elections),
    ],
)
def test_sentences_about_anomalies_name_those_of_the_table(
    begin: str, end: str, selects: Callable[[Anomaly], bool], repository: Path
) -> None:
    """The anomalies that a setting makes legal, or does not, are the same in text and table."""
    text = (repository / "docs" / "anomalies.md").read_text()
    (sentence,) = re.findall(f"{begin}(.*?){end}", text, re.S)
    named = re.findall(r"`([\w-]+)`", sentence)
    assert sorted(named) == sorted(a.id for a in anomalies.OF_HISTORIES.values() if selects(a))


def test_served_versions_are_those_of_the_table(repository: Path) -> None:
    """docs/not-implemented.md lists each API's versions as the broker serves them."""
    text = (repository / "docs" / "not-implemented.md").read_text()
    told: dict[int, str] = {}
    for names, versions in re.findall(r"^\| ([^|]*\(\d+\)[^|]*) \| ([^|]*) \|", text, re.M):
        keys = [int(key) for key in re.findall(r"\((\d+)\)", names)]
        told.update(zip(keys, versions.split(", "), strict=True))

    def spoken(served: range) -> str:
        first, last = served[0], served[-1]
        return f"v{first}" if first == last else f"v{first}–v{last}"  # noqa: RUF001 - as printed

    assert told == {key: spoken(api.served) for key, api in APIS.items()}
