"""Calls of Maven."""

import asyncio
from pathlib import Path
from xml.etree import ElementTree

import psutil
import pytest

from harness.cluster.polling import until
from harness.systems.java import maven
from harness.systems.java.coordinates import Coordinates
from tests.harness.systems.java.fake_maven import JARS, FakeMaven

NAMESPACE = {"": "http://maven.apache.org/POM/4.0.0"}


async def copy(folder: Path, *, repository_layout: bool = False) -> Path:
    project = maven.pom(JARS, transitive=False)
    return await maven.copy_dependencies(
        maven.require(), project, folder, repository_layout=repository_layout
    )


@pytest.mark.parametrize("transitive", [True, False])
def test_project_file_names_the_jars(transitive: bool) -> None:
    """A project has its dependencies, each without its own dependencies unless they are wanted."""
    project = ElementTree.fromstring(maven.pom(JARS, transitive=transitive))
    found = project.findall("dependencies/dependency", NAMESPACE)
    assert [Coordinates(*parts(each)) for each in found] == list(JARS)
    excluded = [each.findtext("exclusions/exclusion/groupId", None, NAMESPACE) for each in found]
    assert excluded == [None if transitive else "*"] * len(JARS)


def parts(dependency: ElementTree.Element) -> list[str]:
    names = ("groupId", "artifactId", "version", "classifier")
    return [dependency.findtext(name, "", NAMESPACE) for name in names]


async def test_jars_are_copied_into_one_folder(fake_maven: FakeMaven, tmp_path: Path) -> None:
    """The jars of the project are in the folder that is returned, and the plugin is pinned."""
    folder = await copy(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == sorted(jar.file_name for jar in JARS)
    (call,) = fake_maven.calls()
    assert call.startswith(f"-q -B {maven.PLUGIN}:copy-dependencies -DincludeScope=runtime ")


async def test_repository_layout_keeps_the_groups(fake_maven: FakeMaven, tmp_path: Path) -> None:
    """In the layout of a repository, the paths give all coordinates."""
    folder = await copy(tmp_path, repository_layout=True)
    found = {Coordinates.of_path(path.relative_to(folder)) for path in folder.rglob("*.jar")}
    assert found == set(JARS)


async def test_failure_contains_the_cause(fake_maven: FakeMaven, tmp_path: Path) -> None:
    """If Maven fails, the error is one sentence with Maven's own."""
    fake_maven.mode("fail")
    with pytest.raises(maven.MavenError) as caught:
        await copy(tmp_path)
    assert str(caught.value) == (
        "Maven failed with exit status 1: Failed to execute goal: Could not find y.jar"
    )


def test_missing_program_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``mvn`` on PATH, the error says so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(maven.MavenMissing, match=r"^there is no `mvn` on PATH$"):
        maven.require()


async def test_cancelled_task_ends_maven(fake_maven: FakeMaven, tmp_path: Path) -> None:
    """When the task ends after its cancellation, the process of Maven has ended too."""
    fake_maven.mode("hang")
    task = asyncio.create_task(copy(tmp_path))
    async with asyncio.timeout(10):
        await until(fake_maven.hangs, 0.01)
    pid = int(fake_maven.pid.read_text())
    assert psutil.pid_exists(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("", "it printed nothing"),
        ("sh: java: not found\n", "sh: java: not found"),
        ("[ERROR] a\n[ERROR] b -> [Help 1]\n[ERROR]\n[ERROR] [Help 1] http://x\n", "b"),
        ("[ERROR] a\n[ERROR] see the manual\n[INFO] end\n", "a"),
    ],
)
def test_cause(output: str, cause: str) -> None:
    """The cause is the error that refers to the manual, else the first, else the last line."""
    assert maven.cause(output) == cause
