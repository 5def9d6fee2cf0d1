import gc
import math
import os
import socket
import tarfile
from pathlib import Path
from typing import Any

import docker
import pytest
from docker.errors import APIError, ImageNotFound

from harness.cluster.containers import base_image, build, engine, image
from harness.cluster.containers.image import ImageError, Images

FILES = {"Dockerfile": b"FROM x", "broker_impl/a.py": b"1"}


def test_the_tag_changes_with_all_that_goes_in() -> None:
    """The tag depends on each file's name and content and on the base image, on nothing else."""
    tag = build.digest(FILES, "base")
    others = [
        build.digest({**FILES, "Dockerfile": b"FROM y"}, "base"),
        build.digest({"Dockerfile": b"FROM x", "broker_impl/b.py": b"1"}, "base"),
        build.digest(FILES, "base:2"),
    ]
    assert len({tag, *others}) == 4
    assert tag == build.digest(dict(FILES), "base")
    assert len(tag) == 12


def test_the_project_gives_its_code_and_no_litter(repository: Path) -> None:
    """The build context holds the Dockerfile, the requirements and the broker's modules."""
    names = list(image.sources(repository))
    assert {"Dockerfile", "containers/requirements.txt", "broker_impl/__main__.py"} <= set(names)
    assert names == list(dict.fromkeys(names))
    assert not [name for name in names if "__pycache__" in name]


def test_a_context_is_the_same_bytes_each_time() -> None:
    """A context has no times or owners of this machine, as the builder's cache compares bytes."""
    files = [*FILES.items(), ("containers/program/toxiproxy", b"\x7fELF")]
    archive = build.context(files)
    assert archive.getvalue() == build.context(files).getvalue()
    with tarfile.open(fileobj=archive) as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {
        "Dockerfile": 0o644,
        "broker_impl/a.py": 0o644,
        "containers/program/toxiproxy": 0o755,
    }


@pytest.mark.parametrize(
    ("program", "machine", "runs"),
    [
        (b"\x7fELF" + bytes(14) + b"\x3e\0", "x86_64", True),
        (b"\x7fELF" + bytes(14) + b"\x3e\0", "aarch64", False),
        (b"\x7fELF" + bytes(14) + b"\xb7\0", "aarch64", True),
        (b"\xcf\xfa\xed\xfe" + bytes(20), "x86_64", False),
    ],
)
def test_a_program_for_another_machine_is_told_apart(
    program: bytes, machine: str, runs: bool
) -> None:
    """A toxiproxy-server for macOS or another processor is not used in a container."""
    assert image.runs_on(program, machine) is runs


class Engine:
    """An engine with images and containers, to test the removal of old images."""

    def __init__(self, ages_h: dict[str, float], used: tuple[str, ...] = ()) -> None:
        self.api = self
        self._ages = ages_h
        self._used = used
        self.tagged: list[tuple[str, str, str]] = []
        self.pruned: dict[str, Any] = {}

    def info(self) -> dict[str, str]:
        return {"SystemTime": "2026-01-02T00:00:00.123456789Z"}

    def containers(self, *, all: bool) -> list[dict[str, str]]:  # noqa: A002 - the SDK's name
        assert all
        return [{"ImageID": name} for name in self._used]

    def images(self, name: str) -> list[dict[str, str]]:
        return [{"Id": tag} for tag in list(self._ages) if tag.startswith(name + ":")]

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in self._ages:
            raise ImageNotFound(name)
        hour = 24 - self._ages[name]
        asked = f"2026-01-01T{int(hour):02}:{int(hour % 1 * 60):02}:00.987654321Z"
        created = "2025-12-01T00:00:00Z"
        return {
            "Id": name,
            "RepoTags": [name],
            "Created": created,
            "Metadata": {"LastTagTime": asked},
        }

    def remove_image(self, name: str) -> None:
        if name.endswith(":taken"):
            raise APIError("409 Conflict")
        del self._ages[name]

    def tag(self, name: str, repository: str, tag: str) -> None:
        self.tagged.append((name, repository, tag))

    def prune_images(self, filters: dict[str, Any]) -> None:
        self.pruned = filters


def test_leftovers_go_and_nothing_else() -> None:
    """Only old images of this project are removed.

    Those in use, tagged within the last hour, or just built stay, and so do other projects' images.
    """
    ages = {
        "faultline-node:new": 0.1,
        "faultline-node:old": 5.0,
        "faultline-node:used": 5.0,
        "faultline-node:young": 0.5,
        "faultline-toxiproxy:new": 9.0,
        "faultline-toxiproxy:old": 2.0,
        "faultline-toxiproxy:taken": 2.0,
        "somebody-else:old": 9.0,
    }
    engine = Engine(ages, used=("faultline-node:used",))
    image._remove_old(engine, Images("faultline-node:new", "faultline-toxiproxy:new"))
    gone = {"faultline-node:old", "faultline-toxiproxy:old"}
    assert gone.isdisjoint(ages)
    assert len(ages) == 6
    assert engine.pruned["label"] == "faultline=image"


@pytest.mark.parametrize("metadata", [{}, {"LastTagTime": "0001-01-01T00:00:00Z"}])
def test_an_engine_that_notes_no_times_is_understood(metadata: dict[str, str]) -> None:
    """If the engine does not record when an image was tagged, its creation time counts."""
    asked = image._asked_for({"Created": "2026-01-01T00:00:00Z", "Metadata": metadata})
    assert asked.isoformat() == "2026-01-01T00:00:00+00:00"


def test_images_that_are_there_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each existing image takes one request; it is tagged as asked for and as the latest."""
    monkeypatch.setenv("FAULTLINE_BASE_IMAGE", "base")
    images = image._names("base")
    engine = Engine({images.node: 3.0, images.toxiproxy: 3.0})
    assert image.ensure(engine) == images
    assert engine.tagged == [
        (images.node, "faultline-node", "latest"),
        (images.toxiproxy, "faultline-toxiproxy", "latest"),
    ]


class Refusing:
    """A builder that fails in its last step."""

    def __init__(self) -> None:
        self.api = self

    def build(self, **_: Any) -> list[dict[str, str]]:
        return [
            {"stream": "Step 1/2 : RUN false\n"},
            {"stream": "cp: no such file\n"},
            {"stream": " ---> Running\n"},
            {"error": "The command returned a non-zero code: 1"},
        ]


def test_a_failed_build_is_one_sentence() -> None:
    """The error holds the engine's message and the last line of the failed command."""
    with pytest.raises(ImageError) as caught:
        build.build(Refusing(), build.context(()), "faultline-node:x", {}, "node")
    assert str(caught.value) == (
        "faultline-node:x cannot be built: The command returned a non-zero code: 1 "
        "(cp: no such file)"
    )


# The SDK leaves the socket open over which it could not connect; no other test may see it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("why", "told"),
    [
        (FileNotFoundError(2, "No such file or directory"), "(No such file or directory)"),
        (PermissionError(13, "Permission denied"), "(Permission denied)"),
        (TimeoutError("timed out"), "(timed out)"),
    ],
)
def test_without_an_engine_one_sentence_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], why: OSError, told: str
) -> None:
    """Without a usable engine ``make image`` soon prints one sentence with the reason.

    The engine may be absent, forbidden or hanging.
    """

    def connecting(self: socket.socket, address: object) -> None:
        assert (self.gettimeout() or math.inf) <= engine.CONNECT_TIMEOUT_S
        raise why

    monkeypatch.setattr(socket.socket, "connect", connecting)
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    assert image.main() == image.UNAVAILABLE
    said = capsys.readouterr().err
    assert said.startswith(f"no container engine answers at unix:///no/such/socket {told}")
    assert said.count("\n") == 1
    gc.collect()


def test_the_links_of_a_cluster_to_play_with_are_no_part_of_a_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The links of docker-compose.yml's cluster are in the proxy's image only.

    Another file of links therefore makes another image of the proxy, not of the node.
    """
    files = image.sources()
    before = image._names("base")
    monkeypatch.setattr(image, "sources", lambda: {**files, image.LINKS: b"[]"})
    after = image._names("base")
    assert (before.node, before.toxiproxy) != (after.node, after.toxiproxy)
    assert before.node == after.node


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("target", "command"),
    [
        ("node", ["python3", "-m", "broker_impl", "--help"]),
        ("toxiproxy", ["cat", "/etc/toxiproxy.json"]),
    ],
)
def test_a_checkout_that_only_its_owner_reads_makes_the_same_images(
    target: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that are 0600 under umask 077 are readable for the image's user."""
    client = docker.from_env()
    images = image.ensure(client)
    base = next(base for base in base_image.candidates() if image._names(base) == images)
    work = image.ROOT / ".tools" / "image"
    files = [*image.sources().items(), *image._fetched(client, work, lambda _: None)]
    original = tarfile.TarFile.addfile

    def private(tar: tarfile.TarFile, member: tarfile.TarInfo, content: Any = None) -> None:
        member.mode &= 0o700
        original(tar, member, content)

    monkeypatch.setattr(tarfile.TarFile, "addfile", private)
    archive = build.context(files)
    monkeypatch.undo()
    name = f"faultline-test-private-{target}:{os.getpid()}"
    try:
        build.build(client, archive, name, {"BASE": base, "TOXIPROXY": "scratch"}, target)
        said = client.containers.run(
            name, command, entrypoint="", remove=True, labels={"faultline": "test-image"}
        )
        assert said
    finally:
        client.images.remove(name, force=True)
        client.close()


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_images_run_as_nobody_in_particular() -> None:
    """Both images run as user 10001, which owns /data.

    The node's image has nft and a broker, the other one the proxy.
    """
    client = docker.from_env()
    images = image.ensure(client)
    assert image.ensure(client) == images
    shown = client.containers.run(
        images.node,
        ["sh", "-c", "id -u; stat -c %u /data; nft --version; python3 -m broker_impl --help"],
        remove=True,
        read_only=True,
        cap_drop=["ALL"],
        network_mode="none",
        labels={"faultline": "test-image"},
    ).decode()
    assert shown.splitlines()[:2] == ["10001", "10001"]
    assert "nftables v" in shown
    assert "--environment" in shown
    said = client.containers.run(images.toxiproxy, ["-version"], remove=True).decode()
    assert said
    user = client.images.get(images.toxiproxy).attrs["Config"]["User"]
    assert user == image.NODE_USER
    client.close()
