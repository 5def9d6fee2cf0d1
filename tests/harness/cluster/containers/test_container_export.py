"""Files copied out of a container are the same, and safe, on every supported Python."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.containers import container_export


def member(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    made.mode = 0o755
    for attribute, value in more.items():
        setattr(made, attribute, value)
    return made


class FakeEngine:
    """An engine that has one archive and one log."""

    def __init__(self, *members: tarfile.TarInfo) -> None:
        self.api = self
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for one in members:
                one.size = len(one.name) if one.isreg() else 0
                tar.addfile(one, io.BytesIO(one.name.encode()))
        self._archive = archive.getvalue()

    def get_archive(self, identity: str, path: str) -> tuple[list[bytes], dict[str, Any]]:
        return [self._archive[:700], self._archive[700:]], {}

    def logs(self, identity: str, *, stream: bool, follow: bool) -> list[bytes]:
        return [b"one\n", b"two\n"]


def test_data_is_copied_without_the_filters_of_newer_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data is copied without extraction filters, which Python 3.11.0 to 3.11.3 do not have."""

    def extractall(self: tarfile.TarFile, path: Path) -> None:
        raise AssertionError("unsafe by itself")

    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    folder = member("data", tarfile.DIRTYPE)
    container_export.data(FakeEngine(folder, member("data/x-0/0.log")), "c0ffee", "/data", tmp_path)
    assert (tmp_path / "data" / "x-0" / "0.log").read_text() == "data/x-0/0.log"


@pytest.mark.parametrize("name", ["../outside", "data/../../outside", "/outside"])
def test_nothing_lies_outside(tmp_path: Path, name: str) -> None:
    """A name that leads out of the folder is an error."""
    inside = tmp_path / "inside"
    with pytest.raises(tarfile.TarError, match="outside"):
        container_export.data(FakeEngine(member(name)), "c0ffee", "/data", inside)
    assert list(tmp_path.rglob("outside")) == []


@pytest.mark.parametrize(
    "odd",
    [
        member("data/odd", tarfile.SYMTYPE, linkname="/etc"),
        member("data/odd", tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("data/odd", tarfile.CHRTYPE),
        member("data/odd", tarfile.FIFOTYPE),
    ],
    ids=["symbolic link", "link", "device", "pipe"],
)
def test_links_and_devices_stay_behind(tmp_path: Path, odd: tarfile.TarInfo) -> None:
    """Links and devices are not copied, so a path through a link is a file in the folder."""
    container_export.data(FakeEngine(odd, member("data/file")), "c0ffee", "/data", tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "file"]


def test_the_log_is_copied_whole(tmp_path: Path) -> None:
    """The log is copied completely, chunk by chunk."""
    container_export.log(FakeEngine(), "c0ffee", tmp_path / "broker-1")
    assert (tmp_path / "broker-1" / "log.txt").read_text() == "one\ntwo\n"
