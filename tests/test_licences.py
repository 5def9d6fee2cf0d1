"""Dependencies are free to ship with: none outside the development group is under copyleft."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPYLEFT = re.compile(
    r"\b(?:[AL]?GPL|EUPL|SSPL|CC-BY-SA|OSL|CPAL)|GNU .*General Public", re.IGNORECASE
)


def locked() -> dict[str, dict[str, Any]]:
    """The packages of the lock file by name."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {package["name"]: package for package in lock["package"]}


def runtime_names() -> list[str]:
    """The locked packages that ``faultline`` needs when it runs, on any platform."""
    packages = locked()
    found: set[str] = set()
    waiting = ["faultline"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [needed["name"] for needed in packages[name].get("dependencies", ())]
    return sorted(found - {"faultline"})


def licence(name: str) -> str:
    """Return what an installed distribution's metadata says about its licence."""
    facts = metadata(name).json
    classifiers = [
        line.removeprefix("License :: ")
        for line in facts.get("classifier", ())
        if line.startswith("License :: ")
    ]
    stated = facts.get("license_expression") or facts.get("license", "")
    return " | ".join(filter(None, [str(stated).partition("\n")[0], *classifiers]))


@pytest.mark.parametrize(
    ("text", "copyleft"),
    [
        ("MIT", False),
        ("Apache-2.0", False),
        ("BSD-3-Clause | OSI Approved :: BSD License", False),
        ("OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)", False),  # binds single files only
        ("LGPL-2.1-or-later", True),
        ("GPLv3", True),
        ("AGPL-3.0-only", True),
        ("OSI Approved :: GNU Lesser General Public License v2 or later (LGPLv2+)", True),
    ],
)
def test_copyleft_is_recognised(text: str, copyleft: bool) -> None:
    """The pattern matches licences that bind the whole program, and no others."""
    assert bool(COPYLEFT.search(text)) is copyleft


def test_runtime_dependencies_are_permissive() -> None:
    """No runtime dependency is under copyleft, and each states its licence."""
    stated = {}
    for name in runtime_names():
        try:
            stated[name] = licence(name)
        except PackageNotFoundError:
            continue  # locked for another platform or Python
    assert len(stated) >= len(runtime_names()) // 2
    assert {name: text for name, text in stated.items() if not text} == {}
    assert {name: text for name, text in stated.items() if COPYLEFT.search(text)} == {}


def test_the_copyleft_oracle_stays_a_development_dependency() -> None:
    """crc32c (LGPL) is installed, is recognised as copyleft, and is not a runtime dependency."""
    assert COPYLEFT.search(licence("crc32c"))
    assert "crc32c" not in runtime_names()


def test_lock_file_names_public_hosts_only() -> None:
    """The lock file names public hosts only, and no private mirror."""
    text = (ROOT / "uv.lock").read_text()
    hosts = {urlsplit(url).hostname for url in re.findall(r'https?://[^"]+', text)}
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
