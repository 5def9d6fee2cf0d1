"""A cluster of real processes with TLS and SCRAM, and the faults of its users and certificates."""

import random
from pathlib import Path

import pytest

from harness.cluster.processes.process_cluster import Processes
from harness.systems.kafka.system import Kafka
from model.plan import Plan
from nemesis import certificates, partition
from tests.nemesis.conftest import apply
from workloads.client import confluent_admin
from workloads.client.confluent_settings import QUIET

pytestmark = [
    pytest.mark.prove,
    pytest.mark.cluster,
    pytest.mark.usefixtures("toxiproxy_server"),
]


async def test_an_encrypted_cluster_and_its_faults(tmp_path: Path) -> None:
    """librdkafka connects; links with TLS are proved cut; a broker shows what certificate it has.

    The certificate of one broker is rejected until the heal, and the others' are not.
    """
    system = Kafka()
    plan = Plan(
        brokers=2,
        broker={**system.broker},
        options={**system.options, "client_listeners": [], "security": "scram-tls"},
    )
    rng = random.Random(1)
    cluster = Processes(plan, tmp_path, rng, system=system, state=tmp_path / "state")
    await cluster.start()
    try:
        bootstrap, properties, _ = cluster.connection()
        common = {**QUIET, "bootstrap.servers": bootstrap, **properties}
        deleted = confluent_admin.delete_topic(common, "no-such-topic")
        assert deleted == "UNKNOWN_TOPIC_OR_PART"
        wrong = confluent_admin.delete_topic(common | {"sasl.password": "wrong"}, "t")
        assert wrong is not None
        assert wrong.startswith("_")  # no broker has answered
        cut = await apply(partition, cluster, "partition-clients", ["broker-1"], {}, rng)
        assert cut.effect.proved, cut.effect.how
        assert (await partition.heal(cluster, cut)).proved
        for certificate in ("expired", "foreign"):
            options = {"certificate": certificate}
            applied = await apply(
                certificates, cluster, "expire-certificate", ["broker-2"], options, rng
            )
            assert applied.effect.proved, applied.effect.how
            assert await cluster.handshake("broker-1") == "verified"
            healed = await certificates.heal(cluster, applied)
            assert healed.proved, healed.how
    finally:
        await cluster.stop()
