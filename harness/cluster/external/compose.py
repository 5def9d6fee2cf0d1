"""The containers of a compose project that are nodes, as the user's labels say.

Compose writes the project's name into a label of each container. A container is a node if it also
has the label ``faultline.node``; it may have been created again since the last look, so a name is
looked up for each use.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.cluster.address import Address
from harness.cluster.containers.engine import EngineError, connect
from harness.cluster.node import ClusterError
from model.roles import ZOOKEEPER, NodeId

if TYPE_CHECKING:
    from docker import DockerClient

PROJECT = "com.docker.compose.project"
ONE_OFF = "com.docker.compose.oneoff"
"""The label of containers that ``docker compose run`` has created; they are no nodes."""
NODE, ADDRESS, CLIENTS_PORT = "faultline.node", "faultline.address", "faultline.clients-port"
NODE_NAME = re.compile(r"(broker-[0-9]+|zookeeper(-[1-9][0-9]*)?|controller-[0-9]+)")
NODE_NAMES = "a node is called broker-ID, zookeeper, zookeeper-NUMBER or controller-ID"
USER = "[compose]"
"""What needs a container engine, in an error."""
LOOPBACK = "127.0.0.1"
ZOOKEEPER_PORT = 2181
_ANY_HOST = ("", "0.0.0.0", "::")
_PROJECT_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_NAME_LINE = re.compile(r"""^name:[ \t]*(['"]?)([^'"#\n]*?)\1[ \t]*(?:#.*)?$""", re.MULTILINE)


class BadProject(ClusterError):
    """The project or its labels are wrong; the message says which and why."""


class Compose(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[compose]`` of a cluster file."""

    project: str | None = None
    """The name of the project; by default what compose calls the project of ``file``."""
    file: str | None = None
    """The compose file; by default one in the folder of the cluster file."""


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A TCP port that is published at a fixed port of this machine."""

    inside: int
    at: Address


class ComposeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node, and the container that it is in."""

    name: NodeId
    container: str
    """The container's name."""
    identity: str
    address: Address | None = None
    """Where the harness reaches the node, as its labels or published ports say."""
    clients_port: int | None = None
    """The port, in the container, of the listener for clients."""
    runs: bool = True
    """Did the container run when it was looked up?"""
    has_network: bool = True
    """Does the container have a network of its own?"""
    networks: dict[str, tuple[str, ...]] = {}
    """Its addresses by network; it has none while it does not run."""
    ports: tuple[int, ...] = ()
    """The TCP ports that it exposes."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its addresses in all networks."""
        return tuple(each for those in self.networks.values() for each in those)


def project_of(table: Compose, folder: Path) -> str:
    """Return the name of the project, as compose derives it; raises :class:`BadProject`."""
    if table.project is not None:
        if not _PROJECT_NAME.fullmatch(table.project):
            raise BadProject(f"project: {table.project!r} is not a name that compose accepts")
        return table.project
    if table.file is None:
        return _from_folder(folder)
    path = folder / table.file
    try:
        found = _NAME_LINE.search(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise BadProject(f"file: {path}: {getattr(error, 'strerror', error)}") from None
    if found is None:
        return _from_folder(path.parent)
    if "$" in found[2]:
        raise BadProject(f"file: {path}: its name has variables; name the project")
    return found[2].strip()


def _from_folder(folder: Path) -> str:
    """Return what compose calls the project of a folder."""
    return re.sub(r"[^a-z0-9_-]", "", folder.resolve().name.lower()).lstrip("_-")


def read(project: str) -> dict[NodeId, ComposeNode]:
    """Return the nodes of a project, of which there is at least one; blocks.

    Raises :class:`BadProject`, or :class:`EngineError` if no container engine answers.
    """
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    client = connect(USER)
    try:
        found = nodes(client, project)
        if not found:
            raise BadProject(why_none(client, project))
    except (DockerException, RequestException) as error:
        raise EngineError(f"the container engine: {error}") from error
    finally:
        client.close()
    return found


def nodes(client: "DockerClient", project: str) -> dict[NodeId, ComposeNode]:
    """Return the nodes of a project by their names; blocks. Raises :class:`BadProject`."""
    found: dict[NodeId, ComposeNode] = {}
    for inspected in _labelled(client, project):
        node = _node(inspected)
        if node.name in found:
            raise BadProject(
                f"{NODE} = {node.name}: the containers {found[node.name].container} and"
                f" {node.container} have the same label"
            )
        found[node.name] = node
    return dict(sorted(found.items()))


def why_none(client: "DockerClient", project: str) -> str:
    """Return why a project has no nodes."""
    everything = client.api.containers(all=True, filters={"label": PROJECT})
    count = sum(each["Labels"].get(PROJECT) == project for each in everything)
    if count:
        return f"none of the {count} containers of the project {project} has the label {NODE}"
    known = sorted({each["Labels"][PROJECT] for each in everything})
    others = f"; it has those of {', '.join(known)}" if known else ""
    return f"the container engine has no containers of a project {project}{others}"


def _labelled(client: "DockerClient", project: str) -> Sequence[Mapping[str, Any]]:
    """Return the inspections of the project's containers with the label of nodes."""
    from docker.errors import NotFound

    rows = client.api.containers(all=True, filters={"label": [f"{PROJECT}={project}", NODE]})
    found = []
    for row in rows:
        if row["Labels"].get(ONE_OFF, "False") == "True":
            continue
        try:
            found.append(client.api.inspect_container(row["Id"]))
        except NotFound:  # removed since it was listed
            continue
    return found


def _node(inspected: Mapping[str, Any]) -> ComposeNode:
    labels = inspected["Config"]["Labels"]
    container = inspected["Name"].removeprefix("/")
    name = labels[NODE]
    if not NODE_NAME.fullmatch(name):
        raise BadProject(f"the container {container}: {NODE} = {name!r}: {NODE_NAMES}")
    published = _published(inspected)
    clients_port = _port(container, labels.get(CLIENTS_PORT))
    if clients_port is not None:
        _check_listeners(container, labels.get(ADDRESS), clients_port, published)
    return ComposeNode(
        name=name,
        container=container,
        identity=inspected["Id"],
        address=_address(container, name, labels.get(ADDRESS), published),
        clients_port=clients_port,
        runs=inspected["State"]["Running"],
        has_network=_has_network(inspected["HostConfig"]["NetworkMode"]),
        networks=_networks(inspected),
        ports=_exposed(inspected),
    )


def _has_network(mode: str) -> bool:
    """Return whether a container with this network mode has a network of its own."""
    return mode not in ("host", "none") and not mode.startswith("container:")


def _port(container: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise BadProject(f"the container {container}: {CLIENTS_PORT} = {text!r} must be a port")
    return int(text)


def _address(
    container: str, name: NodeId, text: str | None, published: Sequence[Published]
) -> Address | None:
    """Return the address of the label; for a node that is no broker also of a published port.

    Brokers advertise their addresses.
    """
    if text is not None:
        host, _, port = text.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise BadProject(f"the container {container}: {ADDRESS} = {text!r} must be host:port")
        return Address.of(text)
    if name.startswith("broker-"):
        return None
    if name.startswith(ZOOKEEPER):
        published = [one for one in published if one.inside == ZOOKEEPER_PORT]
    return published[0].at if len(published) == 1 else None


def _check_listeners(
    container: str, address: str | None, clients_port: int, published: Sequence[Published]
) -> None:
    """Refuse to cut clients off a listener through which the harness observes the node."""
    if address is None:
        raise BadProject(
            f"the container {container}: {CLIENTS_PORT} needs {ADDRESS}, the address of another"
            " listener through which the broker is observed while clients do not reach it"
        )
    port = int(address.rpartition(":")[2])
    inside = {one.at.port: one.inside for one in published}.get(port, port)
    if inside == clients_port:
        raise BadProject(
            f"the container {container}: {CLIENTS_PORT} and {ADDRESS} name the same listener, so a"
            " broker that clients do not reach could not be observed"
        )


def _published(inspected: Mapping[str, Any]) -> list[Published]:
    """Return the ports with a fixed port on this machine; others change with each start."""
    found: dict[int, Published] = {}
    for inside, bindings in sorted((inspected["HostConfig"].get("PortBindings") or {}).items()):
        number, _, protocol = inside.partition("/")
        for binding in bindings or ():
            port = binding.get("HostPort", "")
            if protocol == "tcp" and port.isdecimal() and int(port):
                host = binding.get("HostIp", "")
                at = Address(LOOPBACK if host in _ANY_HOST else host, int(port))
                found.setdefault(int(number), Published(inside=int(number), at=at))
    return list(found.values())


def _networks(inspected: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {
        name: tuple(each[key] for key in ("IPAddress", "GlobalIPv6Address") if each.get(key))
        for name, each in inspected["NetworkSettings"]["Networks"].items()
    }


def _exposed(inspected: Mapping[str, Any]) -> tuple[int, ...]:
    exposed = [*(inspected["Config"].get("ExposedPorts") or {})]
    exposed += [*(inspected["HostConfig"].get("PortBindings") or {})]
    split = [each.partition("/") for each in exposed]
    return tuple(sorted({int(number) for number, _, protocol in split if protocol == "tcp"}))
