"""A cluster of real processes with TLS and SCRAM, and the faults of its users and certificates."""

import random
from pathlib import Path

import pytest

from harness.cluster.processes.process_cluster import Processes
from harness.systems.kafka.system import Kafka
from tests.harness.cluster import protected

pytestmark = [
    pytest.mark.prove,
    pytest.mark.cluster,
    pytest.mark.usefixtures("toxiproxy_server"),
]


async def test_an_encrypted_cluster_and_its_faults(tmp_path: Path) -> None:
    """Processes."""
    state = tmp_path / "state"
    rng = random.Random(1)
    cluster = Processes(protected.plan(), tmp_path, rng, system=Kafka(), state=state)
    await cluster.start()
    try:
        await protected.show(cluster)
    finally:
        await cluster.stop()
