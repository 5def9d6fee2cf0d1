"""The fixtures of the tests of Java programs."""

import sys
from pathlib import Path

import pytest

from harness.systems.java.lockfile import Lock, dump
from tests.harness.systems.java.fake_maven import JARS, SCRIPT, FakeMaven, checksum


@pytest.fixture
def fake_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMaven:
    """``mvn`` is the only program on PATH; release 9.9.9 is pinned and the cache is empty."""
    fake = FakeMaven(tmp_path / "fake")
    fake.locks.mkdir(parents=True)
    lock = Lock(fake.product, "9.9.9", {jar: checksum(jar) for jar in JARS})
    (fake.locks / "9.9.9.toml").write_text(dump(lock))
    program = fake.folder / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(SCRIPT.format(python=sys.executable, folder=str(fake.folder)))
    program.chmod(0o755)
    fake.mode("ok")
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return fake
