"""``faultline doctor``: what it prints, and its exit statuses."""

import json
from collections.abc import Sequence

import pytest

from harness.app import doctor
from harness.cluster.address import Address
from model.cluster_facts import BrokerFacts, ClusterFacts
from tests.harness.app.cli.conftest import Call

FACTS = ClusterFacts(release="4.1", brokers=(BrokerFacts(id=1, host="a\x1b[2J", port=1),))


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Address]]:
    """Replace the examination of a cluster by fixed facts; return the addresses of each call."""
    asked: list[Sequence[Address]] = []

    def examine(bootstrap: Sequence[Address]) -> doctor.Diagnosis:
        asked.append(bootstrap)
        return doctor.diagnosis(FACTS)

    monkeypatch.setattr(doctor, "examine", examine)
    return asked


def test_text(call: Call, found: list[Sequence[Address]]) -> None:
    """The text has no control characters, whatever a broker reports; the status is 0."""
    status, out, err = call("doctor", "--bootstrap", "x:1,y:2")
    assert (status, err) == (0, "")
    assert out.startswith("release     about Apache Kafka 4.1\n")
    assert "\x1b" not in out
    assert found == [(Address("x", 1), Address("y", 2))]


def test_json(call: Call, found: list[Sequence[Address]]) -> None:
    """The JSON has the facts and the possible workloads."""
    status, out, _ = call("doctor", "--bootstrap", "x:1", "--json")
    document = json.loads(out)
    assert (status, document["cluster"]["release"]) == (0, "4.1")
    assert document["workloads"][0]["name"] == "idempotent"
    assert document["workloads"][0]["is_possible"] is False


def test_unreachable_cluster(call: Call) -> None:
    """The status is 69 if no broker answers, and the reason goes to standard error."""
    status, out, err = call("doctor", "--bootstrap", "127.0.0.1:1")
    assert (status, out) == (69, "")
    assert err == "faultline: no broker answers at 127.0.0.1:1\n"
    assert call("doctor", "--bootstrap", "127.0.0.1:1", "--json")[:2] == (69, "null\n")


def test_bad_request(call: Call) -> None:
    """A bad address has status 64."""
    status, out, err = call("doctor", "--bootstrap", "nowhere")
    assert (status, out) == (64, "")
    assert err == "faultline: --bootstrap nowhere: an address must be host:port\n"
    assert call("doctor")[0] == 64
