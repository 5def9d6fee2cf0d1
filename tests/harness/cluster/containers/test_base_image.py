import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError, ImageNotFound

from harness.cluster.containers import base_image
from harness.cluster.containers.base_image import JAVA, PYTHON, ImageError

DEFAULT, MADE = PYTHON.default, PYTHON.made

NAMED = {"FAULTLINE_BASE_IMAGE": "example.org:5000/python:3.11"}


class Engine:
    """An engine's local images, and a registry that has some."""

    def __init__(self, *local: str, registry: tuple[str, ...] = (), silent: bool = False) -> None:
        self.local = list(local)
        self.api = self
        self.pulled: list[str] = []
        self._registry = registry
        self._silent = silent
        self.released = threading.Event()

    def inspect_image(self, name: str) -> dict[str, Any]:
        if name not in self.local:
            raise ImageNotFound(f"no {name}")
        return {}

    def pull(self, repository: str, *, tag: str, **_: Any) -> Iterator[dict[str, str]]:
        name = f"{repository}:{tag}"
        self.pulled.append(name)
        if self._silent:
            self.released.wait(20)
        if name not in self._registry:
            raise APIError("500", SimpleNamespace(reason="x", status_code=500), "no such host")
        yield {"status": "Downloading"}
        self.local.append(name)


def obtain(engine: Engine, work: Path, environment: dict[str, str]) -> str:
    return base_image.obtain(engine, work, lambda _: None, environment)


def test_what_is_there_is_not_pulled(tmp_path: Path) -> None:
    """An image that is present is not pulled.

    The default is preferred to the one that was built.
    """
    for local, expected in (((DEFAULT, MADE), DEFAULT), ((MADE,), MADE)):
        engine = Engine(*local)
        assert obtain(engine, tmp_path, {}) == expected
        assert engine.pulled == []


def test_a_registry_that_answers_is_used(tmp_path: Path) -> None:
    """A registry that answers supplies the default or the named image.

    A port in a name is no tag.
    """
    assert obtain(Engine(registry=(DEFAULT,)), tmp_path, {}) == DEFAULT
    named = NAMED["FAULTLINE_BASE_IMAGE"]
    assert obtain(Engine(MADE, registry=(named,)), tmp_path, NAMED) == named


def test_a_named_image_is_not_replaced(tmp_path: Path) -> None:
    """A named image is used or refused with a sentence, never replaced by another."""
    with pytest.raises(ImageError, match=r"example.org.* cannot be pulled: no such host$"):
        obtain(Engine(MADE, DEFAULT), tmp_path, NAMED)


def test_each_base_has_its_own_names(tmp_path: Path) -> None:
    """The base with Java is another image, and another variable names it."""
    engine = Engine(DEFAULT, MADE, JAVA.made)
    found = base_image.obtain(engine, tmp_path, lambda _: None, {}, JAVA)
    assert found == JAVA.made
    with pytest.raises(ImageError, match=r"which FAULTLINE_JAVA_BASE_IMAGE names"):
        base_image.obtain(
            Engine(JAVA.made), tmp_path, lambda _: None, {JAVA.variable: "java:17"}, JAVA
        )


def test_without_debootstrap_the_sentence_says_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names all three ways to get a base image."""
    monkeypatch.setattr(base_image, "debootstrap", lambda environment: None)
    with pytest.raises(ImageError) as caught:
        obtain(Engine(), tmp_path, {})
    for way in (DEFAULT, "FAULTLINE_BASE_IMAGE", "debootstrap"):
        assert way in str(caught.value)


def test_a_silent_registry_is_given_up() -> None:
    """A pull without an answer is abandoned after the patience, though the engine continues."""
    engine = Engine(silent=True)
    refused = base_image.pull(engine, DEFAULT, patience_s=0.05)
    engine.released.set()
    assert refused == "the registry did not respond for 0.05 s"


def test_a_failed_program_ends_in_its_last_words() -> None:
    """The error ends with the last line of debootstrap's own output."""
    assert base_image.last_line("I: a\n", "E: no such mirror\n\n") == "E: no such mirror"
    assert base_image.last_line("", "") == "it printed nothing"
