from pathlib import Path

import pytest

from setup import fetch, pins, toxiproxy
from setup.problem import CannotGoOn

BUILD = b"\0path\tgithub.com/Shopify/toxiproxy/v2/cmd/server\nmod\t%s\tv2.12.0\th1:abc=\n"


def program(path: Path, says: str) -> Path:
    """A program that answers any call with one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_build_information_tells_the_version() -> None:
    """A binary whose version is "git" is identified by Go's build information, unless it is another
    module."""
    assert toxiproxy.built_from(BUILD % b"github.com/Shopify/toxiproxy/v2") == "2.12.0"
    assert toxiproxy.built_from(BUILD % b"github.com/else/toxiproxy/v2") is None


def test_version(tmp_path: Path) -> None:
    """The version is what the program prints, or what its build information says, or none."""
    server = program(tmp_path / "server", "toxiproxy-server version 2.9.0")
    assert toxiproxy.version(server) == "2.9.0"
    program(server, "toxiproxy-server version git")
    assert toxiproxy.version(server) is None
    with server.open("ab") as file:
        file.write(b"exit\n" + BUILD % b"github.com/Shopify/toxiproxy/v2")
    assert toxiproxy.version(server) == "2.12.0"
    assert toxiproxy.version(tmp_path / "absent") is None


def test_only_the_pinned_version_on_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the pinned version on PATH is used; another version is ignored."""
    tools = tmp_path / "tools"
    ours = program(tools / "bin" / "toxiproxy-server", "version 2.12.0")
    other = program(tmp_path / "path" / "toxiproxy-server", "version 2.11.0")
    monkeypatch.setenv("PATH", str(other.parent))
    assert toxiproxy.server(tools) == ours
    program(other, "version 2.12.0")
    assert toxiproxy.server(tools) == other


def test_the_release_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Go the released binary is fetched, and wrong bytes end in a sentence with advice."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(fetch, "get", lambda url: b"not it: " + url.encode())
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    with pytest.raises(CannotGoOn, match=r"not the pinned .*: install toxiproxy-server 2\.12\.0"):
        toxiproxy.server(tmp_path)
    assert not (tmp_path / "bin" / "toxiproxy-server").exists()

    monkeypatch.setattr(fetch, "verified", lambda data, pin: data)
    server = toxiproxy.server(tmp_path)
    assert server.stat().st_mode & 0o111
    assert server.read_text() == (
        "not it: https://github.com/Shopify/toxiproxy/releases/download/"
        f"v{pins.TOXIPROXY_VERSION}/toxiproxy-server-linux-amd64"
    )
