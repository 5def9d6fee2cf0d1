import subprocess
from pathlib import Path

import pytest

from setup import java

SETTINGS = """\
Property settings:
    java.home = /usr/lib/jvm/java-17-openjdk-amd64
    java.specification.version = 17
    java.version = 17.0.15
openjdk version "17.0.15" 2025-04-15
"""


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (SETTINGS, java.Java(Path("/usr/lib/jvm/java-17-openjdk-amd64"), 17)),
        (
            "    java.home = /opt/a b\n    java.specification.version = 1.8\n",
            java.Java(Path("/opt/a b"), 8),
        ),
        ("Error: could not create the Java Virtual Machine.", None),
    ],
)
def test_described(settings: str, found: java.Java | None) -> None:
    """Java reports its home and its version, before version 9 with a leading 1."""
    assert java.described(settings) == found


def test_what_is_not_java_is_none(tmp_path: Path) -> None:
    """A program that is absent, or is not Java, is not used as Java."""
    assert java.ask(tmp_path / "java") is None
    assert java.ask(Path("/bin/true")) is None


@pytest.mark.parametrize(
    ("given", "received"),
    [
        (["--add-modules=jdk.incubator.vector", "-Xmx1g"], ["-Xmx1g"]),
        (["-Xmx1g", "--add-modules", "jdk.incubator.vector", "Main"], ["-Xmx1g", "Main"]),
        (["--add-modules=java.sql", "Main"], ["--add-modules=java.sql", "Main"]),
        (["--add-modules", "java.sql", "Main"], ["--add-modules", "java.sql", "Main"]),
        (
            ["-Da=b c", "Main", "", "it's", "$HOME", "*"],
            ["-Da=b c", "Main", "", "it's", "$HOME", "*"],
        ),
        ([], []),
    ],
)
def test_the_wrapper_drops_one_module_and_nothing_else(
    tmp_path: Path, given: list[str], received: list[str]
) -> None:
    """Spark's request for the missing module is dropped; all other arguments arrive as given."""
    real = tmp_path / "it's here" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor argument in "$@"; do printf "%s\\n" "$argument"; done\n')
    real.chmod(0o755)
    java.wrap(real, tmp_path / "jre")
    wrapper = tmp_path / "jre" / "bin" / "java"
    answer = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == received
