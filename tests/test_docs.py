"""The documents name what exists: their tables are compared with those of the code."""

import re
from pathlib import Path

import pytest

from broker_impl.api.table import APIS
from checkers import expectations, invariants
from harness.app import catalogue
from harness.app.report.findings import MEANING

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


def test_every_anomaly_is_explained(repository: Path) -> None:
    """Every anomaly has a row in docs/anomalies.md and a sentence in the report."""
    text = (repository / "docs" / "anomalies.md").read_text()
    explained = set(re.findall(r"^\| `([\w-]+)` \|", text, re.M))
    kernels = Path(expectations.__file__).parent / "kernels"
    sources = (*kernels.glob("*.py"), kernels.parent / "findings.py")
    source = "".join(path.read_text() for path in sources)
    reported = set(re.findall(r'anomaly="([\w-]+)"', source)) | {
        prefix + name for name in ("poll-skip", "nonmonotonic-poll") for prefix in ("", "int-")
    }
    assert {"nonmonotonic-send", "G1a"} < explained
    assert reported <= explained == set(MEANING)


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


def test_every_invariant_is_explained(repository: Path) -> None:
    """Every invariant has a row in docs/anomalies.md and a sentence in the report."""
    text = (repository / "docs" / "anomalies.md").read_text()
    explained = set(re.findall(r"^\| `invariant:([\w-]+)` \|", text, re.M))
    folder = Path(invariants.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py") if path.stem != "__init__")
    named = {name for name in invariants.MEANING if f'"{name}"' in source}
    assert named == explained == set(invariants.MEANING)
