"""How Apache Kafka runs in containers: in an image built from jars, or in one that the user names.

An image of the user is configured by environment variables, as Kafka's own images are (KIP-975,
``KAFKA_ADVERTISED_LISTENERS``).
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from harness.cluster.system import ImageSource, SystemUnavailable
from harness.systems.java.jvm import Runtime

NAME = "faultline-apache-kafka"
ZOOKEEPER_NAME = "faultline-apache-zookeeper"
LIBS = "opt/kafka/libs"
"""The folder of the jars, in the build context and in the image."""
RUNTIME = Runtime(PurePosixPath("java"), (PurePosixPath("/", LIBS, "*"),))
"""Java and the jars, as a container finds them."""
USER = 10001
DOCKERFILE = f"""\
ARG BASE
FROM ${{BASE}}
LABEL faultline=image
USER root
RUN set -eu; \\
    groupadd --gid {USER} faultline; \\
    useradd --uid {USER} --gid {USER} --no-create-home --home-dir /data \\
        --shell /usr/sbin/nologin faultline; \\
    install --directory --owner={USER} --group={USER} /data
COPY {LIBS}/ /{LIBS}/
USER {USER}:{USER}
WORKDIR /data
RUN ["java", "-version"]
ENTRYPOINT []
"""
_DONE = ".faultline-set-up"
"""A file among the data: the command that must end before the first start has ended."""


def source(classpath: Sequence[Path], name: str = NAME) -> ImageSource:
    """Return what the image with these jars is built from.

    Raises :class:`SystemUnavailable` if two of them have one name.
    """
    files = {f"{LIBS}/{jar.name}": jar for jar in classpath}
    if len(files) < len(classpath):
        raise SystemUnavailable("two jars of the class path have the same name")
    return ImageSource(name, "java", DOCKERFILE, MappingProxyType(files))


def command(argv: Sequence[str], first: Sequence[str], data: str) -> list[str]:
    """Return the command of a container that runs ``first`` before its first ``argv``."""
    if not first:
        return list(argv)
    done = shlex.quote(f"{data}/{_DONE}")
    script = f"[ -e {done} ] || {{ {shlex.join(first)} && touch {done}; }} || exit"
    return ["sh", "-c", f"{script}; exec {shlex.join(argv)}"]


def environment(
    settings: Mapping[str, str], cluster_id: str, heap_mb: int, log_folder: str
) -> dict[str, str]:
    """Return the variables that configure an image of Kafka, by the rules of KIP-975.

    A period in the name of a setting becomes ``_``, ``_`` becomes ``__``, and ``-`` becomes
    ``___``.
    """
    named = {variable(name): value for name, value in settings.items()}
    own = {"CLUSTER_ID": cluster_id, "KAFKA_HEAP_OPTS": f"-Xmx{heap_mb}m", "LOG_DIR": log_folder}
    return {**named, **own}


def variable(setting: str) -> str:
    """Return the environment variable of a setting (KIP-975)."""
    escaped = setting.replace("_", "__").replace("-", "___").replace(".", "_")
    return f"KAFKA_{escaped.upper()}"
