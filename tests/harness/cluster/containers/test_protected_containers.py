"""A cluster of containers with TLS and SCRAM, and the faults of its users and certificates."""

import random
from pathlib import Path

import pytest

from harness.cluster.containers.container_cluster import Containers
from harness.systems.kafka.system import Kafka
from tests.harness.cluster import protected

pytestmark = [
    pytest.mark.docker,
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


async def test_an_encrypted_cluster_and_its_faults(tmp_path: Path) -> None:
    """Containers: the certificates name the host of the links and this machine."""
    folder = tmp_path / "protected-containers"
    cluster = Containers(protected.plan(), folder, random.Random(1), system=Kafka())
    await cluster.start()
    try:
        await protected.show(cluster)
    finally:
        await cluster.stop()
