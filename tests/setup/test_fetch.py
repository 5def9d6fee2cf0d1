import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from setup import fetch
from setup.pins import Pin, for_machine

PAGE = """
<a href="../../packages/ab/uv-1.0-py3-none-any.whl#sha256=00">uv-1.0-py3-none-any.whl</a>
<a data-requires-python="&gt;=3.8" href='https://files.example/x/uv-1.1%2Blocal.whl'>other</a>
<a href="https://files.example/x/uv-1.0-py3-none-any.whl.metadata">metadata</a>
"""


@pytest.mark.parametrize(
    ("filename", "url"),
    [
        (
            "uv-1.0-py3-none-any.whl",
            "https://index.example/packages/ab/uv-1.0-py3-none-any.whl",
        ),
        ("uv-1.1+local.whl", "https://files.example/x/uv-1.1%2Blocal.whl"),
        ("uv-1.2.whl", None),
    ],
)
def test_link_to(filename: str, url: str | None) -> None:
    """A file is found by its exact name, its link resolved and freed of the fragment."""
    assert fetch.link_to(PAGE, "https://index.example/simple/uv/", filename) == url


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://pypi.org/simple"),
        ({"PIP_INDEX_URL": ""}, "https://pypi.org/simple"),
        ({"PIP_INDEX_URL": "https://a.example/simple/"}, "https://a.example/simple"),
        (
            {"PIP_INDEX_URL": "https://a.example", "UV_DEFAULT_INDEX": "https://b.example"},
            "https://b.example",
        ),
    ],
)
def test_index_url(environment: dict[str, str], url: str) -> None:
    """uv's own settings win over pip's, and PyPI is the default."""
    assert fetch.index_url(environment) == url


def test_another_checksum_is_refused() -> None:
    """Data with another checksum than the pinned one is rejected."""
    pin = Pin("tool", hashlib.sha256(b"good").hexdigest())
    assert fetch.verified(b"good", pin) == b"good"
    with pytest.raises(fetch.NotFetched, match="tool has SHA-256"):
        fetch.verified(b"evil", pin)


def test_a_file_that_does_not_come_is_told(tmp_path: Path) -> None:
    """Every failure to fetch a file is reported as one kind of error."""
    with pytest.raises(fetch.NotFetched, match="the download from"):
        fetch.get((tmp_path / "absent").as_uri())


def test_a_wheel_is_fetched_by_its_index_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the index page to the unpacked program, which keeps its permission to run."""
    archive = tmp_path / "index" / "uv" / "uv-1.0.whl"
    archive.parent.mkdir(parents=True)
    with zipfile.ZipFile(archive, "w") as wheel:
        member = zipfile.ZipInfo("uv-1.0.data/scripts/uv")
        member.external_attr = (stat.S_IFREG | 0o755) << 16
        wheel.writestr(member, b"program")
        wheel.writestr("uv-1.0.dist-info/METADATA", b"text")
    (archive.parent / "page").write_text('<a href="uv-1.0.whl">uv-1.0.whl</a>')
    monkeypatch.setenv("UV_DEFAULT_INDEX", (tmp_path / "index").as_uri())
    answers = {(archive.parent).as_uri() + "/": archive.parent / "page"}
    plain = fetch.get
    monkeypatch.setattr(
        fetch, "get", lambda url: answers[url].read_bytes() if url in answers else plain(url)
    )
    pin = Pin("uv-1.0.whl", hashlib.sha256(archive.read_bytes()).hexdigest())

    fetch.wheel("uv", pin, tmp_path / "uv")

    program = tmp_path / "uv" / "uv-1.0.data" / "scripts" / "uv"
    assert program.read_bytes() == b"program"
    assert stat.S_IMODE(program.stat().st_mode) == 0o755
    with pytest.raises(fetch.NotFetched, match=r"does not list uv-2\.0\.whl"):
        fetch.wheel("uv", Pin("uv-2.0.whl", "00"), tmp_path / "newer")


@pytest.mark.parametrize(
    ("system", "machine", "found"),
    [
        ("Linux", "x86_64", "intel"),
        ("Linux", "AMD64", "intel"),
        ("Linux", "arm64", "arm"),
        ("Linux", "riscv64", None),
        ("Darwin", "arm64", None),
    ],
)
def test_pin_for_machine(system: str, machine: str, found: str | None) -> None:
    """A processor's several names have the same pin, and a machine without a pin has none."""
    pins = {"x86_64": Pin("intel", ""), "aarch64": Pin("arm", "")}
    pin = for_machine(pins, system, machine)
    assert (pin.filename if pin else None) == found
