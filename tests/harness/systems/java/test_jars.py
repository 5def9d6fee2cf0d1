"""The cache of jars."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from harness.cluster.polling import until
from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import jars, lockfile
from harness.systems.java.maven import MavenError, MavenMissing
from tests.harness.systems.java.fake_maven import JARS, FakeMaven

VERSION = "9.9.9"
DOWNLOADING = "downloading the 3 jars of Apache Kafka 9.9.9 by Maven"
AGAIN = """
import asyncio, sys
from pathlib import Path
from harness.systems.java import jars, lockfile
product = lockfile.Product("Apache Kafka", Path(sys.argv[1]), "")
asyncio.run(jars.resolve("9.9.9", print, product))
"""


class Resolver:
    """Resolve the pinned release, and collect the messages."""

    def __init__(self, fake: FakeMaven) -> None:
        self.fake = fake
        self.said: list[str] = []

    async def __call__(self) -> tuple[Path, ...]:
        return await jars.resolve(VERSION, self.said.append, self.fake.product)

    def is_cached(self) -> bool:
        return jars.is_cached(VERSION, self.fake.product)

    @staticmethod
    def entries() -> set[str]:
        """What is in the cache, but for the files of locks."""
        folder = jars.cache_folder(PRODUCT)
        found = folder.iterdir() if folder.is_dir() else iter(())
        return {path.name for path in found if not path.name.endswith(".lock")}


@pytest.fixture
def resolver(fake_maven: FakeMaven) -> Resolver:
    return Resolver(fake_maven)


async def test_jars_are_downloaded_once(resolver: Resolver, fake_maven: FakeMaven) -> None:
    """The first call downloads the jars; the second returns them without Maven or a message."""
    assert not resolver.is_cached()
    paths = await resolver()
    assert [path.name for path in paths] == [jar.file_name for jar in JARS]
    assert [path.read_text() for path in paths] == [jar.artifact for jar in JARS]
    folder = jars.cache_folder(PRODUCT) / VERSION
    assert resolver.said == [DOWNLOADING, f"the jars of Apache Kafka 9.9.9 are in {folder}"]
    assert resolver.is_cached()
    fake_maven.mode("fail")
    assert await resolver() == paths
    assert len(fake_maven.calls()) == 1
    assert resolver.entries() == {VERSION}


async def test_cached_jars_need_no_maven(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ``mvn``, cached jars are returned, and jars that are not cached are an error."""
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MavenMissing) as caught:
        await resolver()
    folder = jars.cache_folder(PRODUCT) / VERSION
    assert str(caught.value) == (
        "there is no `mvn` on PATH, and the jars of Apache Kafka 9.9.9 are not in "
        f"{folder}; install Maven, or unpack a distribution and name its folder"
    )
    monkeypatch.setenv("PATH", path)
    paths = await resolver()
    monkeypatch.setenv("PATH", "")
    assert await resolver() == paths


async def test_wrong_checksum_is_an_error(resolver: Resolver, fake_maven: FakeMaven) -> None:
    """Jars of which one has another checksum do not get into the cache."""
    fake_maven.mode("wrong")
    with pytest.raises(jars.JarsError, match=r"org\.x:y:1\.0 has the SHA-256 .* is pinned"):
        await resolver()
    assert not resolver.is_cached()
    assert resolver.entries() == set()


async def test_failing_maven_leaves_nothing(resolver: Resolver, fake_maven: FakeMaven) -> None:
    """If Maven fails, the cache is as before, and the next call tries again."""
    fake_maven.mode("fail")
    with pytest.raises(MavenError, match=r"Could not find y\.jar$"):
        await resolver()
    assert resolver.entries() == set()
    fake_maven.mode("ok")
    assert len(await resolver()) == len(JARS)


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed"])
async def test_damaged_jars_are_downloaded_again(
    damage: str, resolver: Resolver, fake_maven: FakeMaven
) -> None:
    """A cached jar that was changed, truncated or removed is replaced before it is used."""
    paths = await resolver()
    match damage:
        case "changed":
            paths[1].write_text("Y")
        case "truncated":
            paths[1].write_text("")
        case _:
            paths[1].unlink()
    resolver.said.clear()
    assert await resolver() == paths
    assert [path.read_text() for path in paths] == [jar.artifact for jar in JARS]
    assert "org.x:y:1.0" in resolver.said[0]
    assert resolver.said[1] == DOWNLOADING
    assert resolver.entries() == {VERSION}


async def test_unknown_release_is_an_error(resolver: Resolver) -> None:
    """A release without a lock is an error for both functions."""
    with pytest.raises(lockfile.UnknownRelease, match=r"nearest pinned release is 9\.9\.9"):
        await jars.resolve("9.9.8", resolver.said.append, resolver.fake.product)
    with pytest.raises(lockfile.UnknownRelease):
        jars.is_cached("9.9.8", resolver.fake.product)


async def test_cache_that_cannot_be_written_is_an_error(resolver: Resolver) -> None:
    """If a file is where the cache's folder should be, the error names it."""
    jars.cache_folder(PRODUCT).parent.mkdir(parents=True)
    jars.cache_folder(PRODUCT).write_text("")
    with pytest.raises(jars.JarsError, match=r"apache-kafka.*: Not a directory$"):
        await resolver()


async def test_two_at_once_download_once(resolver: Resolver, fake_maven: FakeMaven) -> None:
    """The second of two calls waits for the first, says so, and uses its jars."""
    first, second = await asyncio.gather(resolver(), resolver())
    assert first == second
    assert len(fake_maven.calls()) == 1
    assert "waiting for another process that downloads Apache Kafka 9.9.9" in resolver.said


async def test_cancelled_call_leaves_nothing(resolver: Resolver, fake_maven: FakeMaven) -> None:
    """A cancelled call removes what it has downloaded, and another call can follow at once."""
    fake_maven.mode("hang")
    task = asyncio.create_task(resolver())
    async with asyncio.timeout(10):
        await until(fake_maven.hangs, 0.01)
    assert len(resolver.entries()) == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert resolver.entries() == set()
    fake_maven.mode("ok")
    assert len(await resolver()) == len(JARS)


@pytest.mark.slow
async def test_killed_process_leaves_nothing_that_is_trusted(
    resolver: Resolver, fake_maven: FakeMaven, repository: Path
) -> None:
    """After a process was killed half way, the next call downloads all jars, and tidies up."""
    fake_maven.mode("hang")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGAIN, str(fake_maven.locks),
        cwd=repository, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    async with asyncio.timeout(30):
        await until(fake_maven.hangs, 0.01)
    process.kill()
    await process.wait()
    assert len(resolver.entries()) == 1
    assert not resolver.is_cached()
    try:
        fake_maven.mode("ok")
        assert len(await resolver()) == len(JARS)
        assert resolver.entries() == {VERSION}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(fake_maven.pid.read_text()), signal.SIGKILL)


@pytest.mark.real_kafka
@pytest.mark.slow
async def test_real_maven_finds_the_pinned_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maven downloads the jars of a real release, with the checksums that are pinned."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said: list[str] = []
    paths = await jars.resolve("3.9.1", said.append, PRODUCT)
    assert "kafka_2.13-3.9.1.jar" in {path.name for path in paths}
    assert len(said) == 2
    assert await jars.resolve("3.9.1", said.append, PRODUCT) == paths
    assert len(said) == 2
