"""A container engine with the containers of compose projects, without any container."""

from typing import Any

from docker.errors import APIError

PROJECT = "kafka"
NEVER = "0001-01-01T00:00:00Z"


class Conflict(APIError):  # type: ignore[misc]
    """The engine's answer to a call for a container in another state."""

    status_code = 409


def container(name: str, **labels: str) -> dict[str, Any]:
    """Return the inspection of a running container of the project ``kafka``."""
    return {
        "Id": f"id-{name}",
        "Name": f"/kafka_{name}_1",
        "Config": {"Labels": {"com.docker.compose.project": PROJECT, **labels}},
        "HostConfig": {"NetworkMode": "kafka_default", "PortBindings": {}},
        "NetworkSettings": {"Networks": {"kafka_default": endpoint(name)}},
        "State": {
            "Running": True,
            "Paused": False,
            "ExitCode": 0,
            "OOMKilled": False,
            "StartedAt": "life 1",
        },
    }


def endpoint(name: str, address: str | None = None) -> dict[str, Any]:
    """Return the endpoint of a container with an alias, and with an address ending in its digit."""
    number = "".join(letter for letter in name if letter.isdecimal()) or "9"
    return {
        "IPAddress": address or f"172.20.0.{number}",
        "GlobalIPv6Address": "",
        "IPAMConfig": None,
        "Aliases": [name],
        "Links": None,
        "DriverOpts": None,
    }


def node(name: str, **labels: str) -> dict[str, Any]:
    """Return the inspection of a container that is a node."""
    return container(name, **{"faultline.node": name, **labels})


def publishes(inspected: dict[str, Any], ports: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Publish ports of a container: inner port to host address and port."""
    inspected["HostConfig"]["PortBindings"] = {
        inside: [{"HostIp": host, "HostPort": port}] for inside, (host, port) in ports.items()
    }
    return inspected


class FakeDocker:
    """The client of an engine with these containers; it has the calls of the SDK's ``api``."""

    def __init__(self, *containers: dict[str, Any]) -> None:
        self.api = self
        self.all = {each["Id"]: each for each in containers}
        self.calls: list[tuple[Any, ...]] = []
        self.is_closed = False
        self.obeys_stop = True
        self.connects_at_start = False
        """Does a container without networks get its first one when it is started?"""

    def close(self) -> None:
        self.is_closed = True

    def containers(self, *, all: bool, filters: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: A002
        assert all, "containers that do not run are nodes, too"
        wanted = filters["label"]
        wanted = [wanted] if isinstance(wanted, str) else wanted
        return [
            {"Id": each["Id"], "Labels": labels}
            for each in self.all.values()
            for labels in [each["Config"]["Labels"]]
            if all_match(labels, wanted)
        ]

    def inspect_container(self, identity: str) -> dict[str, Any]:
        return self.all[identity]

    def state(self, identity: str) -> dict[str, Any]:
        found: dict[str, Any] = self.all[identity]["State"]
        return found

    def kill(self, identity: str, signal: str) -> None:
        self.calls.append(("kill", identity, signal))
        self.state(identity).update(Running=False, Paused=False, ExitCode=137)

    def stop(self, identity: str, within_s: int) -> None:
        self.calls.append(("stop", identity, within_s))
        self.state(identity).update(Running=False, ExitCode=0 if self.obeys_stop else 137)

    def start(self, identity: str) -> None:
        self.calls.append(("start", identity))
        self.state(identity).update(Running=True, StartedAt="life 2")
        networks = self.all[identity]["NetworkSettings"]["Networks"]
        if self.connects_at_start and not networks:
            networks["kafka_default"] = endpoint("7") | {"Aliases": None}

    def pause(self, identity: str) -> None:
        if self.state(identity)["Paused"]:
            raise Conflict("conflict", explanation="already paused")
        self.state(identity)["Paused"] = True

    def unpause(self, identity: str) -> None:
        self.state(identity)["Paused"] = False

    def logs(self, identity: str, **how: Any) -> bytes:
        return b""

    def disconnect_container_from_network(self, identity: str, network: str) -> None:
        self.calls.append(("disconnect", identity, network))
        del self.all[identity]["NetworkSettings"]["Networks"][network]

    def connect_container_to_network(self, identity: str, network: str, **how: Any) -> None:
        self.calls.append(("connect", identity, network, how))
        made = endpoint("8", how["ipv4_address"]) | {"Aliases": how["aliases"]}
        self.all[identity]["NetworkSettings"]["Networks"][network] = made


def all_match(labels: dict[str, str], wanted: list[str]) -> bool:
    """Return whether a container has the labels, each with or without a value."""
    pairs = {f"{name}={value}" for name, value in labels.items()}
    return all(each in pairs if "=" in each else each in labels for each in wanted)
