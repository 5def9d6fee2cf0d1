"""Coordinates name one jar in a Maven repository."""

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

_COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Coordinates:
    """Group, artifact, version and, rarely, a classifier such as ``linux-x86_64``."""

    group: str
    artifact: str
    version: str
    classifier: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``group:artifact:version[:classifier]``; ValueError for anything else."""
        found = _COORDINATES.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not group:artifact:version[:classifier]")
        return cls(found[1], found[2], found[3], found[4] or "")

    @classmethod
    def of_path(cls, path: PurePath) -> Self:
        """Return the coordinates of a jar by its path, relative to a Maven repository."""
        *groups, artifact, version, _ = path.parts
        classifier = path.stem.removeprefix(f"{artifact}-{version}").removeprefix("-")
        return cls(".".join(groups), artifact, version, classifier)

    def __str__(self) -> str:
        parts = (self.group, self.artifact, self.version, self.classifier)
        return ":".join(part for part in parts if part)

    @property
    def file_name(self) -> str:
        """The name of the jar in a folder of jars, which does not contain the group."""
        parts = (self.artifact, self.version, self.classifier)
        return "-".join(part for part in parts if part) + ".jar"
