"""Releases of Apache Kafka keep what they acknowledge, in both modes, under faults.

These tests are few, because a cluster of Java programs takes some ten seconds to start.
"""

import asyncio
import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest

from harness.cluster.containers import build, node_images
from harness.systems.apache_kafka.releases import Release
from harness.systems.apache_kafka.system import ApacheKafka
from model import cluster_facts
from model.plan import Plan

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real_kafka,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

PLAN = """
workload = "{workload}"
nemesis = {nemesis}
system = "{system}"
time-limit = 20
inline = true

[options]
coordination = "{coordination}"

[[schedule]]
id = 1
at_s = 3.0
duration_s = 5.0
fault = "{first}"
targets = "leader:topic0-0"
options = {{ from = ["brokers", "{keepers}"] }}

[[schedule]]
id = 2
at_s = 11.0
duration_s = 2.0
fault = "{second}"
targets = "controller"
"""
ZOOKEEPER = {
    "workload": "idempotent",
    "nemesis": '["kill", "partition"]',
    "system": "apache-kafka:3.9.1",
    "coordination": "zookeeper",
    "first": "partition-one",
    "second": "kill",
    "keepers": "zookeeper",
}
KRAFT = {
    "workload": "idempotent",
    "nemesis": '["controllers", "partition"]',
    "system": "apache-kafka:4.1.0",
    "coordination": "kraft-separate",
    "first": "partition-one",
    "second": "kill-controllers",
    "keepers": "controllers",
}


LIKE_KAFKAS_OWN = """
FROM {image}
USER root
RUN useradd --uid 1000 appuser; install --directory --owner=1000 /config /defaults /mounted; \\
    for name in server log4j tools-log4j; do touch /defaults/$name.properties; done
USER appuser
CMD said=$(java -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup \\
        --default-configs-dir /defaults --mounted-configs-dir /mounted \\
        --final-configs-dir /config 2>&1) || echo "$said" | grep "already formatted" || exit 1; \\
    exec java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*' kafka.Kafka /config/server.properties
"""
"""An image that is configured by the program of Apache's own images (KIP-975)."""


def run(plan: Path, environment: dict[str, str]) -> tuple[int, dict[str, Any], Path]:
    """Return the exit status, the verdict and the folder of a run."""
    results = plan.parent / "results"
    done = subprocess.run(
        ["faultline", "run", str(plan), "--json", "--results", str(results)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    [folder] = results.iterdir()
    return done.returncode, json.loads(done.stdout), folder


@pytest.mark.prove
@pytest.mark.parametrize("mode", [ZOOKEEPER, KRAFT], ids=["zookeeper", "kraft"])
def test_a_release_is_valid_under_faults(
    mode: dict[str, str], tmp_path: Path, project_environment: dict[str, str]
) -> None:
    """A leader is cut off from its peers, then the controller is killed: nothing is lost."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.format(**mode))
    status, verdict, folder = run(plan, project_environment)
    assert status == 0, verdict
    assert verdict["evidence"]["faults_effective"] == 2
    facts = cluster_facts.read(folder)
    assert facts is not None
    assert facts.broker["min.insync.replicas"] == "2"
    assert facts.mode == mode["coordination"].partition("-")[0]
    assert mode["system"].startswith(f"apache-kafka:{facts.release}")


@pytest.mark.docker
def test_images_of_the_user_and_from_jars_are_valid_under_faults(
    tmp_path: Path, project_environment: dict[str, str]
) -> None:
    """Brokers run in an image that the environment configures, and in one built from jars."""
    release, plan = ApacheKafka(Release.parse("3.9.1")), Plan(brokers=3)
    asyncio.run(release.prepare(plan, print))
    with closing(docker.from_env()) as client:
        built = node_images.ensure(client, release, plan, print).of_nodes["broker-1"]
        named = "faultline-test-like-kafkas-own:3.9.1"
        dockerfile = LIKE_KAFKAS_OWN.format(image=built).encode()
        build.build(client, build.context([("Dockerfile", dockerfile)]), named, {})
    in_containers = 'target = "containers"\n[options]\n'
    for mode, options in (
        ({**ZOOKEEPER, "system": "apache-kafka:3.9.1"}, ""),
        ({**KRAFT, "system": "apache-kafka:3.9.1"}, f'image = "{named}"\n'),
    ):
        text = PLAN.format(**mode).replace("[options]\n", f"{in_containers}{options}")
        path = tmp_path / mode["coordination"] / "plan.toml"
        path.parent.mkdir()
        path.write_text(text)
        status, verdict, _ = run(path, project_environment)
        assert status == 0, verdict
        assert verdict["evidence"]["faults_effective"] == 2
