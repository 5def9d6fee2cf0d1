"""What a cluster with TLS and SCRAM must do on every target."""

import random

from harness.cluster.containers.container_cluster import Containers
from harness.cluster.processes.process_cluster import Processes
from harness.systems.kafka.system import Kafka
from model.plan import Plan
from nemesis import certificates, partition
from tests.nemesis.conftest import apply
from workloads.client import confluent_admin
from workloads.client.confluent_settings import QUIET


def plan() -> Plan:
    """Two brokers with TLS and SCRAM."""
    system = Kafka()
    return Plan(
        brokers=2,
        broker={**system.broker},
        options={**system.options, "client_listeners": [], "security": "scram-tls"},
    )


async def show(cluster: Processes | Containers) -> None:
    """Check what clients and the harness find at a cluster of ``plan()`` that has been started.

    librdkafka connects; links with TLS are proved cut; a broker shows what certificate it has. The
    certificate of one broker is rejected until the heal, and the others' are not.
    """
    rng = random.Random(1)
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
