"""The cluster file: where a user's cluster is, how clients connect, and which hooks apply faults.

Only the command line names it (``--cluster FILE``). Plans and suites are data, while this file can
run commands.
"""

import functools
import hashlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harness.cluster.address import Address
from harness.cluster.external import compose
from harness.cluster.external.compose import NODE_NAME, NODE_NAMES, Compose, ComposeNode
from harness.cluster.external.hooks import Hook, Http, unknown_placeholder
from harness.cluster.node import ClusterError
from model import masking
from model.roles import NodeId

SELECTED = "FAULTLINE_CLUSTER"
"""The environment variable with the path of the file (``--cluster``)."""
CONFIRMED = "FAULTLINE_BREAK_CLUSTER"
"""The environment variable that is set by ``--yes-break-it``."""
BYTES_MAX = 1 << 20
VERBS = (
    *("kill", "start", "stop", "pause", "resume", "status"),
    *("cut", "heal", "reach", "disconnect", "reconnect"),
)
"""What hooks can be for."""
PEER_VERBS = frozenset({"cut", "heal", "reach"})
"""The verbs of links, whose hooks also know the node at the other end."""
NETWORK_VERBS = PEER_VERBS | {"disconnect", "reconnect"}
"""The verbs that need a container with a network of its own."""
CONTAINER_HOOKS = "harness.cluster.external.container_hooks"
"""The program of the default hooks of a compose project."""
_MODULE = ("-P", "-m", CONTAINER_HOOKS)
"""How Python runs the default hooks: without the modules in the folder of the cluster file."""

Seconds = Annotated[float, Meta(gt=0, le=3600)]


class BadClusterFile(ValueError):
    """The cluster file is missing or wrong; the message says where and why."""


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table ``[nodes.NAME]``."""

    address: str | None = None
    """``host:port`` of a listener without encryption that no fault touches."""
    hooks: dict[str, Hook] = {}


class ClusterFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a cluster file."""

    bootstrap: Annotated[list[str], Meta(min_length=1)]
    """``host:port`` of brokers, for the clients."""
    observe: list[str] = []
    """``host:port`` of listeners without encryption, for the harness; default: ``bootstrap``."""
    client: dict[str, Any] = {}
    """Settings of all clients, by librdkafka's names."""
    confirm: bool = False
    """May faults be injected?"""
    compose: Compose | None = None
    """The compose project whose labelled containers are nodes."""
    toxiproxy: str | None = None
    """The address of a Toxiproxy whose proxies carry the links."""
    hooks: dict[str, Hook] = {}
    """Hooks of all nodes, by verb."""
    nodes: dict[str, NodeEntry] = {}
    hook_timeout_s: Seconds = 20.0
    answer_timeout_s: Seconds = 30.0
    """How long a started node may take to answer."""
    start_s: Annotated[float, Meta(ge=0, le=3600)] = 6.0
    """How long a node usually takes to start."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster file that was read and checked."""

    path: Path
    digest: str
    """The SHA-256 of its content."""
    content: ClusterFile
    """With the nodes and the default hooks of the compose project, if it names one."""
    containers: dict[NodeId, ComposeNode] = {}
    """The nodes that were found by labels."""

    @property
    def folder(self) -> Path:
        """The folder in which its commands run."""
        return self.path.parent

    @property
    def properties(self) -> dict[str, str]:
        """The settings of all clients as text."""
        return {name: _text(value) for name, value in _flat(self.content.client)}

    def hook(self, node: NodeId, verb: str) -> Hook | None:
        """Return the hook of a node: its own, or the one of all nodes."""
        entry = self.content.nodes.get(node, NodeEntry())
        return entry.hooks.get(verb, self.content.hooks.get(verb))

    def without(self, verb: str, nodes: Iterable[NodeId]) -> list[NodeId]:
        """Return the nodes without a hook for a verb."""
        return [node for node in nodes if self.hook(node, verb) is None]

    @property
    def observed(self) -> tuple[Address, ...]:
        """The addresses at which the harness finds the cluster."""
        named = self.content.observe or self.broker_addresses or self.content.bootstrap
        return tuple(map(Address.of, named))

    @property
    def broker_addresses(self) -> list[str]:
        """The addresses of the brokers for which the file or a label has one."""
        nodes = self.content.nodes.items()
        return [each.address for name, each in nodes if each.address and name.startswith("broker-")]

    @property
    def is_confirmed(self) -> bool:
        """May faults be injected, according to the file or the command line?"""
        return self.content.confirm or os.environ.get(CONFIRMED) == "1"

    @property
    def masked_properties(self) -> dict[str, str]:
        """The settings of all clients, without secrets."""
        return {name: masking.masked(name, value) for name, value in self.properties.items()}


def select(path: Path, *, confirmed: bool) -> None:
    """Use this file for the target ``external``; raises :class:`BadClusterFile`."""
    os.environ[SELECTED] = str(path.resolve())
    os.environ[CONFIRMED] = "1" if confirmed else ""
    selected()


def selected() -> Loaded | None:
    """Return the file of the command line; ``None`` if it names none."""
    path = os.environ.get(SELECTED)
    return None if not path else _loaded(Path(path))


@functools.cache
def _loaded(path: Path) -> Loaded:
    return load(path)


def load(path: Path) -> Loaded:
    """Read and check a cluster file; raises :class:`BadClusterFile`."""
    try:
        if path.stat().st_size > BYTES_MAX:
            raise BadClusterFile(f"--cluster {path}: the file is larger than {BYTES_MAX:,} bytes")
        raw = path.read_bytes()
        content = msgspec.convert(tomllib.loads(raw.decode()), ClusterFile)
    except OSError as error:
        raise BadClusterFile(f"--cluster {path}: {error.strerror}") from None
    except RecursionError:
        raise BadClusterFile(f"--cluster {path}: the file is nested too deeply") from None
    except msgspec.ValidationError as error:
        raise BadClusterFile(f"--cluster {path}: {str(error).replace('`$.', '`')}") from None
    except ValueError as error:
        raise BadClusterFile(f"--cluster {path}: {error}") from None
    for why in (*_bad_addresses(content), *_bad_names(content), *_bad_hooks(content)):
        raise BadClusterFile(f"--cluster {path}: {why}")
    content, containers = _completed(path, content)
    loaded = Loaded(
        path=path,
        digest=hashlib.sha256(raw).hexdigest(),
        content=content,
        containers=containers,
    )
    for why in _bad_client(loaded):
        raise BadClusterFile(f"--cluster {path}: {why}")
    return loaded


def _completed(path: Path, content: ClusterFile) -> tuple[ClusterFile, dict[NodeId, ComposeNode]]:
    """Add the nodes of the compose project; what the file says itself takes precedence."""
    if content.compose is None:
        return content, {}
    try:
        project = compose.project_of(content.compose, path.parent)
        containers = compose.read(project)
    except ClusterError as error:
        raise BadClusterFile(f"--cluster {path}: [compose]: {error}") from None
    nodes = dict(content.nodes)
    for name, found in containers.items():
        own = nodes.get(name, NodeEntry())
        defaults = _default_hooks(project, found, content.hook_timeout_s)
        derived = None if found.address is None else str(found.address)
        nodes[name] = NodeEntry(
            address=own.address or derived, hooks={**defaults, **content.hooks, **own.hooks}
        )
    return msgspec.structs.replace(content, nodes=nodes), containers


def _default_hooks(project: str, node: ComposeNode, limit_s: float) -> dict[str, Hook]:
    """Return the hooks of a container; one that shares a network cannot be separated from it."""
    program = sys.executable.replace("{", "{{").replace("}", "}}")
    found: dict[str, Hook] = {}
    for verb in VERBS:
        if node.has_network or verb not in NETWORK_VERBS:
            ends = ["{node}", *(["{peer}"] if verb in PEER_VERBS else [])]
            limit = ["--limit-s", f"{limit_s:g}"]
            found[verb] = [program, *_MODULE, verb, project, *ends, *limit]
    return found


def is_default(hook: Hook | None) -> bool:
    """Return whether a hook is one of those that a compose project has by default."""
    return isinstance(hook, list) and tuple(hook[1:4]) == _MODULE


def _bad_addresses(content: ClusterFile) -> Iterable[str]:
    named = [("bootstrap", each) for each in content.bootstrap]
    named += [("observe", each) for each in content.observe]
    named += [
        (f"nodes.{name}.address", entry.address)
        for name, entry in content.nodes.items()
        if entry.address is not None
    ]
    for name, text in named:
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            yield f"{name}: {text!r} must be host:port"
    if content.toxiproxy is not None and toxiproxy_address(content) is None:
        yield f"toxiproxy: {content.toxiproxy!r} must be http://host:port"


def toxiproxy_address(content: ClusterFile) -> Address | None:
    """Return the address of Toxiproxy's API; ``None`` if there is none, or a wrong one."""
    found = re.fullmatch(r"(?:http://)?([^/:]+):([0-9]{1,5})/?", content.toxiproxy or "")
    return None if found is None else Address(found[1], int(found[2]))


def _bad_names(content: ClusterFile) -> Iterable[str]:
    for name in content.nodes:
        if not NODE_NAME.fullmatch(name):
            yield f"nodes.{name}: {NODE_NAMES}"


def _bad_hooks(content: ClusterFile) -> Iterable[str]:
    tables: list[tuple[str, Mapping[str, Hook]]] = [("hooks", content.hooks)]
    tables += [(f"nodes.{name}.hooks", entry.hooks) for name, entry in content.nodes.items()]
    for table, hooks in tables:
        for verb, hook in hooks.items():
            if verb not in VERBS:
                yield f"{table}.{verb}: there is no such hook; there is {', '.join(VERBS)}"
                continue
            known = ("node", "id", *(("peer",) if verb in PEER_VERBS else ()))
            if (strange := unknown_placeholder(hook, known)) is not None:
                shown = ", ".join(f"{{{name}}}" for name in known)
                yield f"{table}.{verb}: {{{strange}}} is not replaced; there is {shown}"
            if isinstance(hook, Http) and not hook.url.startswith(("http://", "https://")):
                yield f"{table}.{verb}: the URL must begin with http:// or https://"


def _bad_client(loaded: Loaded) -> Iterable[str]:
    for name, value in _flat(loaded.content.client):
        if not isinstance(value, str | int | float):
            yield f"client.{name}: the value must be text, a number, true or false"
    protocol = loaded.properties.get("security.protocol", "plaintext").lower()
    if protocol != "plaintext" and not (loaded.content.observe or loaded.broker_addresses):
        yield (
            f"client.security.protocol={protocol}: the harness itself reads metadata without"
            " encryption and authentication; name such listeners in observe = [...]"
        )


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the settings of a table; TOML reads ``sasl.username = 1`` as nested tables."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
