"""docker-compose.yml: its content is consistent, and a client can use its cluster."""

import http.server
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker_impl import config, health
from broker_impl.config.addresses import parse_address
from broker_impl.properties import from_environment
from broker_impl.zookeeper.__main__ import parser as zookeeper_parser
from harness.cluster.containers import base_image, image
from setup import pins

ROOT = Path(__file__).resolve().parent.parent
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())[
    "services"
]
LINKS: dict[str, dict[str, Any]] = {
    link["name"]: link for link in json.loads((ROOT / "containers/toxiproxy.json").read_text())
}
BROKERS = [1, 2, 3, 4, 5]
SERVERS = [1, 2, 3]


def settings(broker: int) -> config.BrokerConfig:
    """Return the settings that a broker makes of its variables."""
    variables = SERVICES[f"broker-{broker}"]["environment"]
    given = from_environment({k: str(v) for k, v in variables.items()})
    assert config.notes(given) == [], "each variable has an effect"
    return config.parse(given)


def upstream(port: int) -> str:
    """Return the address to which Toxiproxy forwards one of its ports."""
    (link,) = [link for link in LINKS.values() if link["listen"] == f"0.0.0.0:{port}"]
    assert link["enabled"]
    return str(link["upstream"])


def test_every_link_has_its_name_and_port() -> None:
    """There is a link for each ordered pair of brokers, from each broker to each ZooKeeper server,
    and from clients to each broker; for each ordered pair of servers there are two."""
    pairs = [f"broker-{a}.broker-{b}" for a in BROKERS for b in BROKERS if a != b]
    pairs += [f"broker-{a}.zookeeper-{b}" for a in BROKERS for b in SERVERS]
    pairs += [
        f"zookeeper-{a}.zookeeper-{b}.{port}"
        for a in SERVERS
        for b in SERVERS
        if a != b
        for port in ("quorum", "election")
    ]
    assert sorted(LINKS) == sorted([*pairs, *(f"clients.broker-{b}" for b in BROKERS)])
    assert len({link["listen"] for link in LINKS.values()}) == len(LINKS)


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_reaches_all_through_toxiproxy(broker: int) -> None:
    """A broker's settings are accepted, and each address in them is the link of that name."""
    mine = settings(broker)
    assert (mine.broker_id, mine.log_dirs) == (broker, "/data")
    for server, connect in zip(SERVERS, mine.zookeeper_connect.split(","), strict=True):
        host, port = parse_address(connect, "zookeeper.connect")
        assert (host, upstream(port)) == ("toxiproxy", f"zookeeper-{server}:2181")
        assert LINKS[f"broker-{broker}.zookeeper-{server}"]["listen"] == f"0.0.0.0:{port}"
    assert sorted(mine.peer_overrides) == [other for other in BROKERS if other != broker]
    for other, (name, peer_port) in mine.peer_overrides.items():
        (internal,) = [e for e in settings(other).endpoints() if e.name == "INTERNAL"]
        assert (name, upstream(peer_port)) == ("toxiproxy", f"broker-{other}:{internal.port}")
        assert LINKS[f"broker-{broker}.broker-{other}"]["listen"] == f"0.0.0.0:{peer_port}"


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_reaches_the_others_through_toxiproxy(server: int) -> None:
    """A server's command is accepted, and names the others at the links of these names."""
    command = SERVICES[f"zookeeper-{server}"]["command"]
    assert command[:3] == ["python3", "-m", "broker_impl.zookeeper"]
    options = zookeeper_parser().parse_args(command[3:])
    assert (options.id, options.listen, str(options.data)) == (server, ("0.0.0.0", 2181), "/data")
    assert [member.id for member in options.server] == SERVERS
    for member in options.server:
        there = f"zookeeper-{member.id}"
        if member.id == server:
            assert (member.host, member.quorum_port, member.election_port) == (there, 2888, 3888)
            continue
        assert member.host == "toxiproxy"
        assert upstream(member.quorum_port) == f"{there}:2888"
        assert upstream(member.election_port) == f"{there}:3888"
        link = LINKS[f"zookeeper-{server}.{there}.quorum"]
        assert link["listen"] == f"0.0.0.0:{member.quorum_port}"


@pytest.mark.parametrize("broker", BROKERS)
def test_a_client_of_the_host_has_two_ways_to_a_broker(broker: int) -> None:
    """A client on the host reaches each broker in two ways: through Toxiproxy, and past it."""
    mine = settings(broker)
    listens = {endpoint.name: endpoint.port for endpoint in mine.endpoints()}
    told = {endpoint.name: endpoint for endpoint in mine.advertised()}
    assert told["PROXIED"] == ("PROXIED", "127.0.0.1", 9091 + broker)
    assert upstream(told["PROXIED"].port) == f"broker-{broker}:{listens['PROXIED']}"
    assert LINKS[f"clients.broker-{broker}"]["listen"] == f"0.0.0.0:{told['PROXIED'].port}"
    assert (
        f"127.0.0.1:{told['PROXIED'].port}:{told['PROXIED'].port}"
        in (SERVICES["toxiproxy"]["ports"])
    )
    assert told["DIRECT"].host == "127.0.0.1"
    assert SERVICES[f"broker-{broker}"]["ports"] == [
        f"127.0.0.1:{told['DIRECT'].port}:{listens['DIRECT']}"
    ]
    assert told["INTERNAL"].host == f"broker-{broker}"


def test_racks_and_profile() -> None:
    """The first three brokers are in three racks, and the other two have a profile."""
    assert len({settings(broker).broker_rack for broker in (1, 2, 3)}) == 3
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert {name for name, profile in profiles.items() if profile} == {"broker-4", "broker-5"}
    assert profiles["broker-4"] == profiles["broker-5"] == ["five"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_container_is_bound(name: str) -> None:
    """Each container has no privileges, has limits, and is published to this machine alone."""
    service = SERVICES[name]
    assert "privileged" not in service
    assert "cap_add" not in service
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert {"mem_limit", "cpus", "pids_limit"} <= service.keys()
    assert service["labels"] == {"faultline": "compose"}
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_nothing_of_this_host_is_seen_inside() -> None:
    """Containers mount no file of the host, since it may be unreadable for them (mode, SELinux)."""
    mounted = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    assert mounted
    assert all(re.match(r"[a-z]", volume) for volume in mounted)


@pytest.mark.parametrize(("proxies", "status"), [({}, 1), ({"clients.broker-1": {}}, 0)])
def test_a_proxy_without_links_is_not_healthy(proxies: dict[str, Any], status: int) -> None:
    """A proxy without links is not healthy, so that brokers do not start behind it."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(proxies).encode())

        def log_message(self, *_: Any) -> None:
            """Suppress the log."""

    kind, *command = SERVICES["toxiproxy"]["healthcheck"]["test"]
    assert kind == "CMD"
    with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        here = [word.replace(":8474", f":{server.server_port}") for word in command]
        done = subprocess.run([sys.executable, *here[1:]], check=False, timeout=30)
    assert done.returncode == status


def test_the_defaults_of_a_build_are_the_dockerfiles() -> None:
    """Compose and a bare build start from the same base."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.M))
    for service in SERVICES.values():
        default = "${FAULTLINE_BASE_IMAGE:-" + defaults["BASE"] + "}"
        assert service["build"]["args"] == {"BASE": default}
    assert defaults["BASE"] == base_image.PYTHON.default
    assert defaults["TOXIPROXY"].endswith(f":{pins.TOXIPROXY_VERSION}")


@cache
def compose() -> list[str] | None:
    """The docker-compose command, in the newer form or the older; ``None`` if neither is
    installed."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            answer = subprocess.run([*command, "version"], capture_output=True, check=False)
            if answer.returncode == 0:
                return command
    return None


def needs_compose() -> list[str]:
    command = compose()
    if command is None:
        pytest.skip("docker: neither docker-compose nor `docker compose` is installed")
    return command


def test_compose_takes_the_file() -> None:
    """docker-compose accepts the file, where it is installed."""
    done = subprocess.run(
        [*needs_compose(), "-f", str(ROOT / "docker-compose.yml"), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def free(port: int) -> bool:
    """Return whether no process listens on a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture
def cluster() -> Iterator[str]:
    """The file's cluster under a name of its own; all of it is removed afterwards."""
    yield from up()


@pytest.fixture
def cluster_of_five() -> Iterator[str]:
    """The same with five brokers."""
    yield from up("--profile", "five")


def up(*options: str) -> Iterator[str]:
    """Start the file's cluster, yield the name of its project, and remove all of it."""
    command = [*needs_compose(), "-f", str(ROOT / "docker-compose.yml"), *options]
    command += ["-p", f"faultline-test-{os.getpid()}"]
    taken = [port for port in (8474, 9092, 19092) if not free(port)]
    if taken:
        pytest.skip(f"docker: port {taken[0]} of docker-compose.yml is taken on this machine")
    client = docker.from_env()
    images = image.ensure(client)
    names = {"FAULTLINE_NODE_IMAGE": images.node, "FAULTLINE_TOXIPROXY_IMAGE": images.toxiproxy}
    environment = {**os.environ, **names}
    try:
        subprocess.run([*command, "up", "-d"], env=environment, check=True, timeout=180)
        yield command[-1]
    finally:
        down = [*command, "down", "--volumes", "--timeout", "10"]
        subprocess.run(down, env=environment, check=True, timeout=120)
        mine = {"label": f"com.docker.compose.project={command[-1]}"}
        left = [
            *client.containers.list(all=True, filters=mine),
            *client.networks.list(filters=mine),
            *client.volumes.list(filters=mine),
        ]
        client.close()
    assert left == []


def curls(page: Path) -> list[tuple[str, bytes]]:
    """Return the address and the body of each ``curl`` that a page shows."""
    lines = re.findall(r"^\$ (curl .*)$", page.read_text(), re.M)
    words = [shlex.split(line, comments=True) for line in lines]
    return [(f"http://{line[3]}", line[5].encode()) for line in words if "-X" in line]


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cluster")
def test_a_client_writes_and_reads_and_a_person_cuts() -> None:
    """100,000 records go through Toxiproxy, and the cut of docs/containers.md and its heal have
    effect."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/06_compose.py"), "127.0.0.1:9092"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all records were read" in done.stdout
    felt = []
    for url, body in curls(ROOT / "docs" / "containers.md"):
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method="POST")):
            felt.append(health.main(["kafka://127.0.0.1:9092"]))
        assert health.main(["kafka://127.0.0.1:19092"]) == 0, "past the mesh nothing is cut"
    assert felt == [1, 0]


PROXIED = "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094,127.0.0.1:9095,127.0.0.1:9096"
RECORDS = 100_000
RATE_HZ = 1_000
OUTAGES = ("zookeeper-1", "zookeeper-2", "zookeeper-3", "broker-1", "broker-2")


def number_in(message: Message) -> int:
    value = message.value()
    assert value is not None
    return int(value)


class Writer(threading.Thread):
    """Writes at least 100,000 numbers, and goes on until it may end."""

    def __init__(self, topic: str) -> None:
        super().__init__(daemon=True)
        self.may_end = threading.Event()
        self.sent = 0
        self.acknowledged: set[int] = set()
        self.errors: list[str] = []
        self._topic = topic
        settings = {"bootstrap.servers": PROXIED, "acks": "all", "enable.idempotence": True}
        limits = {"delivery.timeout.ms": 120_000, "queue.buffering.max.messages": 10 * RECORDS}
        self._producer = Producer({**settings, **limits})

    def run(self) -> None:
        began_s = time.monotonic()
        while self.sent < RECORDS or not self.may_end.is_set():
            while self.sent < (time.monotonic() - began_s) * RATE_HZ:
                self._producer.produce(self._topic, str(self.sent), on_delivery=self._reported)
                self.sent += 1
            self._producer.poll(0.01)
        self._producer.flush(120)

    def _reported(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged.add(number_in(message))


def waited(what: str, holds: Callable[[], bool], patience_s: float = 120) -> None:
    """Wait until something holds; fails after its time."""
    until_s = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < until_s, f"{what} took longer than {patience_s:g} s"
        time.sleep(0.2)


def in_sync(admin: AdminClient, topic: str) -> bool:
    """Return whether every partition of a topic has all its replicas in sync."""
    try:
        found = admin.list_topics(topic, timeout=5).topics[topic].partitions.values()
    except KafkaException:
        return False
    return bool(found) and all(len(each.isrs) == len(each.replicas) == 3 for each in found)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.xdist_group("cluster")
@pytest.mark.timeout(900)
def test_nothing_is_lost_while_servers_and_brokers_are_stopped(cluster_of_five: str) -> None:
    """Each ZooKeeper server and two brokers are stopped, one after the other, while 100,000 records
    are written: all of them are acknowledged, and read."""
    admin, topic = AdminClient({"bootstrap.servers": PROXIED}), "outages"
    waited("five brokers", lambda: len(admin.list_topics(timeout=5).brokers) == 5)
    admin.create_topics([NewTopic(topic, 6, 3)])[topic].result(60)
    waited("all replicas", lambda: in_sync(admin, topic))
    client = docker.from_env()
    writer = Writer(topic)
    writer.start()
    for name in OUTAGES:
        of_project = f"com.docker.compose.project={cluster_of_five}"
        labels = [of_project, f"com.docker.compose.service={name}"]
        [node] = client.containers.list(filters={"label": labels})
        node.stop(timeout=10)
        enough = len(writer.acknowledged) + RATE_HZ
        waited(f"writes without {name}", partial(has, writer, enough))
        node.start()
        waited(f"the start of {name}", partial(is_healthy, client, node.id))
        waited(f"all replicas after {name}", partial(in_sync, admin, topic))
    client.close()
    writer.may_end.set()
    writer.join(300)
    assert writer.errors == []
    assert len(writer.acknowledged) == writer.sent >= RECORDS
    assert read_all(topic, 6, writer.sent) == writer.acknowledged


def has(writer: Writer, acknowledged: int) -> bool:
    return len(writer.acknowledged) >= acknowledged


def is_healthy(client: docker.DockerClient, container: str) -> bool:
    state = client.api.inspect_container(container)["State"]
    return bool(state["Health"]["Status"] == "healthy")


def read_all(topic: str, partitions: int, count: int) -> set[int]:
    """Return the numbers in a topic, of which there are so many."""
    settings = {"bootstrap.servers": PROXIED, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    seen: set[int] = set()

    def is_complete() -> bool:
        seen.update(number_in(m) for m in consumer.consume(10_000, 1) if m.error() is None)
        return len(seen) >= count

    waited("reading", is_complete)
    consumer.close()
    return seen
