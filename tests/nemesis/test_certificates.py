"""Faults of certificates, on a cluster in memory."""

import random

import pytest

from model.capabilities.security import Certificate, Handshake
from model.layout import with_zookeeper
from model.roles import NodeId
from nemesis import certificates
from nemesis.draws import ClusterShape
from tests.nemesis.conftest import FakeCluster, apply


class CertifiedFake(FakeCluster):
    """Brokers that show at once which certificate they were given, unless they are stubborn."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[NodeId, Certificate] = dict.fromkeys(self.brokers, "valid")
        self.stubborn: set[NodeId] = set()

    async def replace_certificate(self, node: NodeId, certificate: Certificate) -> bool:
        if node in self.stubborn:
            return False
        self.shown[node] = certificate
        return True

    async def handshake(self, node: NodeId) -> Handshake:
        if node in self.down:
            return "silence"
        return "verified" if self.shown[node] == "valid" else "rejected"


@pytest.fixture
def certified(monkeypatch: pytest.MonkeyPatch) -> CertifiedFake:
    monkeypatch.setattr(certificates, "WITHIN_S", 0.05)
    monkeypatch.setattr(certificates, "LOOK_EVERY_S", 0.01)
    return CertifiedFake()


@pytest.mark.parametrize("certificate", ["expired", "foreign"])
async def test_a_certificate_is_replaced_and_restored(
    certificate: Certificate, certified: CertifiedFake, rng: random.Random
) -> None:
    """A client rejects the certificate of the target only, until the heal."""
    options = {"certificate": certificate}
    applied = await apply(certificates, certified, "expire-certificate", ["broker-2"], options, rng)
    assert (applied.effect.proved, applied.effect.how) == (
        True,
        "the certificate of broker-2: rejected",
    )
    assert certified.shown == {"broker-1": "valid", "broker-2": certificate, "broker-3": "valid"}
    assert (await certificates.heal(certified, applied)).proved
    assert set(certified.shown.values()) == {"valid"}


async def test_a_broker_that_shows_the_former_certificate_proves_nothing(
    certified: CertifiedFake, rng: random.Random
) -> None:
    """Neither the effect nor the heal is proved by a broker that does not reload its key store."""
    certified.stubborn = {"broker-2"}
    applied = await apply(certificates, certified, "expire-certificate", ["broker-2"], {}, rng)
    assert not applied.effect.proved
    certified.shown["broker-2"] = "expired"
    assert not (await certificates.heal(certified, applied)).proved


async def test_a_broker_that_is_down_reads_its_key_store_later(
    certified: CertifiedFake, rng: random.Random
) -> None:
    """The heal of a broker that is down has nothing to measure."""
    applied = await apply(certificates, certified, "expire-certificate", ["broker-2"], {}, rng)
    certified.down = {"broker-2"}
    healed = await certificates.heal(certified, applied)
    assert (healed.proved, healed.how) == (True, "no broker runs")
    assert certified.shown["broker-2"] == "valid"


def test_draws() -> None:
    """One broker, and each of the reasons."""
    shape = ClusterShape(with_zookeeper(3))
    drawn = [certificates.draw(random.Random(seed), shape) for seed in range(20)]
    assert {each.options["certificate"] for each in drawn} == {"expired", "foreign"}
    low, high = certificates.LASTING_S
    assert all(low <= each.duration_s <= high for each in drawn)
