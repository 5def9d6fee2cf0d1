import ast
import hashlib
import sys
import tomllib
from pathlib import Path

import pytest

from harness.cluster.containers import wheels
from setup import fetch
from setup.pins import Pin


def imported(package: Path) -> set[str]:
    """Return the top-level names of everything that a package's modules import."""
    names: set[str] = set()
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.slow
def test_the_image_has_exactly_what_the_broker_imports(repository: Path) -> None:
    """The image lacks no package that the broker imports and has no other one."""
    foreign = imported(repository / "broker_impl") - sys.stdlib_module_names - {"broker_impl"}
    assert sorted(foreign) == sorted(name.replace("-", "_") for name in wheels.PACKAGES)


def test_they_need_nothing_else_on_linux(repository: Path) -> None:
    """No package has dependencies on Linux, because these would have to be in the image, too."""
    table = tomllib.loads((repository / "uv.lock").read_text())["package"]
    needed = [
        dependency
        for item in table
        if item["name"] in wheels.PACKAGES
        for dependency in item.get("dependencies", [])
    ]
    assert {item["marker"] for item in needed} <= {"sys_platform == 'win32'"}


def test_requirements_are_those_of_the_lock_file(repository: Path) -> None:
    """A bare build installs the versions of uv.lock (``make image`` writes the file)."""
    written = (repository / "containers" / "requirements.txt").read_text()
    assert written == wheels.requirements(wheels.locked(repository / "uv.lock"))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_there_is_a_wheel_for_each_machine(machine: str, repository: Path) -> None:
    """Nothing has to be compiled: every package has a wheel for glibc, or a universal one."""
    pins = [package.for_machine(machine) for package in wheels.locked(repository / "uv.lock")]
    assert len(pins) == len(wheels.PACKAGES)
    assert all(pin and ("any" in pin.filename or machine in pin.filename) for pin in pins)
    assert not any(pin and "musllinux" in pin.filename for pin in pins)


class Index:
    """A package index that has one file and counts the requests."""

    def __init__(self, name: str, data: bytes) -> None:
        self._pages = {
            "https://index.test/simple/thing/": f'<a href="/files/{name}#sha256=0">it</a>'.encode(),
            f"https://index.test/files/{name}": data,
        }
        self.asked = 0

    def get(self, url: str) -> bytes:
        self.asked += 1
        return self._pages[url]


NAME = "thing-1.0-py3-none-any.whl"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Index:
    there = Index(NAME, b"wheel")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.test/simple")
    monkeypatch.setattr(fetch, "get", there.get)
    return there


def package(data: bytes, name: str = NAME) -> wheels.Locked:
    return wheels.Locked("thing", "1.0", (Pin(name, hashlib.sha256(data).hexdigest()),))


def test_a_wheel_is_fetched_once(index: Index, tmp_path: Path) -> None:
    """A wheel that is on the disk is not fetched again."""
    for _ in range(2):
        (path,) = wheels.fetched([package(b"wheel")], "x86_64", tmp_path / "wheels", print)
        assert path.read_bytes() == b"wheel"
    assert index.asked == 2  # one for the page, one for the file


@pytest.mark.usefixtures("index")
def test_another_wheel_is_refused(tmp_path: Path) -> None:
    """A wheel with another checksum than the lock file's is refused, fetched or cached."""
    with pytest.raises(fetch.NotFetched, match="not the pinned"):
        wheels.fetched([package(b"other")], "x86_64", tmp_path, print)
    (tmp_path / NAME).write_bytes(b"tampered")
    with pytest.raises(fetch.NotFetched, match="not the pinned"):
        wheels.fetched([package(b"wheel")], "x86_64", tmp_path, print)


@pytest.mark.usefixtures("index")
def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    """The error names a package without a wheel for the machine, or a file missing in the index."""
    with pytest.raises(fetch.NotFetched, match=r"thing 1\.0 has no wheel for riscv64"):
        wheels.fetched([package(b"", "thing-1.0-cp311-cp311-win.whl")], "riscv64", tmp_path, print)
    with pytest.raises(fetch.NotFetched, match=r"index\.test does not list thing-2"):
        wheels.fetched([package(b"", "thing-2-py3-none-any.whl")], "x86_64", tmp_path, print)
