"""A protected cluster in simulation: its clients' password and rights, as an operator changes them.

The capabilities are those of the faults of ``nemesis.access``, on real brokers.
"""

from pathlib import Path
from typing import Any

import javaproperties
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from harness.cluster.polling import until
from harness.cluster.simulated.simulated_cluster import Simulated
from tests.harness.cluster.simulated.lab import Lab
from workloads.client.aio_connection import connection_arguments

TOPIC = "faultline-ready"
PROTECTED: dict[str, Any] = {"options": {"security": "scram"}}


async def until_known(cluster: Simulated, *, accepted: bool) -> None:
    wanted = {"accepted" if accepted else "refused"}

    async def is_known() -> bool:
        return set((await cluster.logins()).values()) == wanted

    await until(is_known)


async def until_right(cluster: Simulated, *, granted: bool) -> None:
    async def is_known() -> bool:
        said = await cluster.has_right("topics")
        return list(said.values()) == [granted] * len(cluster.brokers)

    await until(is_known)


async def written(cluster: Simulated) -> bool:
    """Write a record as a workload's client does; False if the topic is refused to it."""
    arguments = connection_arguments(cluster.connection().properties)
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap(), acks="all", **arguments)
    try:
        await producer.start()
        await producer.send_and_wait(TOPIC, b"v", partition=0)
    except TopicAuthorizationFailedError:
        return False
    finally:
        await producer.stop()
    return True


async def connects(cluster: Simulated) -> bool:
    try:
        await written(cluster)
    except KafkaError:
        return False
    return True


def test_clients_have_the_rights_that_an_operator_leaves_them(tmp_path: Path) -> None:
    """A client writes; not without the right, not without its password; then it writes again."""

    async def work(cluster: Simulated) -> None:
        assert await written(cluster)
        known = javaproperties.loads((tmp_path / "nodes" / "client.properties").read_text())
        own = {"bootstrap.servers": cluster.bootstrap(), **cluster.connection().properties}
        assert known == own
        assert await cluster.change_right("topics", is_granted=False)
        await until_right(cluster, granted=False)
        assert (await cluster.has_right("transactions"))["broker-1"]
        assert not await written(cluster)
        assert await cluster.change_right("topics", is_granted=True)
        await until_right(cluster, granted=True)
        assert await written(cluster)
        assert await cluster.write_password(is_right=False)
        await until_known(cluster, accepted=False)
        assert not await connects(cluster)
        assert await cluster.write_password(is_right=True)
        await until_known(cluster, accepted=True)
        assert await written(cluster)

    Lab(tmp_path)(work, brokers=2, **PROTECTED)


def test_a_broker_that_does_not_answer_has_no_login(tmp_path: Path) -> None:
    """A killed broker is silent; the others confirm what an operator changes."""

    async def work(cluster: Simulated) -> None:
        await cluster.kill("broker-1")
        assert await cluster.write_password(is_right=False)
        logins = await cluster.logins()
        assert logins["broker-1"] == "silence"
        assert "broker-1" not in await cluster.has_right("topics")

    Lab(tmp_path)(work, brokers=2, **PROTECTED)
