"""The option ``security``: what it refuses, withholds and configures."""

from pathlib import PurePosixPath
from typing import Any

import pytest

from broker_impl import config
from harness.app import catalogue
from harness.cluster import security
from harness.cluster.authority import Authority
from model.capabilities.network import CanCut, CanInterceptMessages
from model.capabilities.security import (
    CanChangeCredentials,
    CanChangeRights,
    CanReplaceCertificates,
)
from model.plan import Plan
from workloads.client.aio_connection import connection_arguments
from workloads.client.confluent_settings import connection_refusal

LISTENERS = ("HARNESS", "CLIENT", "CLIENT_ALICE", "REPLICATION")
USERS = {CanChangeCredentials, CanChangeRights}


def plan(chosen: str, target: str = "processes") -> Plan:
    options: dict[str, Any] = {**catalogue.TARGETS[target].options, security.OPTION: chosen}
    return Plan(target=target, options=options)


def test_an_unknown_protection_is_refused() -> None:
    """The values are none, scram and scram-tls."""
    assert security.refusal({security.OPTION: "tls"}) == (
        "options: security=tls: must be none, scram or scram-tls"
    )
    for known in ("none", "scram", "scram-tls"):
        assert security.refusal({security.OPTION: known}) is None
    assert security.refusal({}) is None


@pytest.mark.parametrize(
    ("target", "chosen", "says"),
    [
        ("simulated", "scram-tls", "cannot be simulated"),
        ("simulated", "scram", None),
        ("processes", "scram-tls", None),
        ("containers", "none", None),
        ("containers", "scram", None),
        ("containers", "scram-tls", None),
    ],
)
def test_targets_refuse_what_they_cannot_protect(
    target: str, chosen: str, says: str | None
) -> None:
    """Simulated bytes are not encrypted."""
    why = catalogue.TARGETS[target].refuse(plan(chosen, target))
    assert why is None if says is None else says in (why or "")


@pytest.mark.parametrize(
    ("chosen", "withheld"),
    [
        ("none", {*USERS, CanReplaceCertificates}),
        ("scram", {CanReplaceCertificates}),
        ("scram-tls", {CanInterceptMessages}),
    ],
)
def test_a_protection_withholds_capabilities(chosen: str, withheld: set[type]) -> None:
    """Open clusters have no users, only TLS has certificates, and hides messages."""
    every = (*USERS, CanReplaceCertificates, CanInterceptMessages, CanCut)
    assert {each for each in every if security.withholds(each, plan(chosen))} == withheld


def test_an_open_cluster_has_no_settings() -> None:
    """Without the option nothing is added, not even a listener."""
    assert security.broker_settings(plan("none"), LISTENERS, PurePosixPath("/b")) == {}
    assert security.client_properties(plan("none"), PurePosixPath("/ca")) == {}
    assert security.listeners(("CLIENT",), plan("none")) == ("CLIENT",)
    assert security.listeners(("CLIENT",), plan("scram")) == ("HARNESS", "CLIENT")


@pytest.mark.parametrize(("chosen", "has_tls"), [("scram", False), ("scram-tls", True)])
def test_brokers_accept_the_settings(chosen: str, *, has_tls: bool) -> None:
    """Clients' and brokers' listeners are protected, that of the harness is not."""
    own = security.broker_settings(plan(chosen), LISTENERS, PurePosixPath("/b"))
    given = {
        "broker.id": "1",
        "zookeeper.connect": "z:1",
        "inter.broker.listener.name": "REPLICATION",
        "listeners": ",".join(f"{name}://h:{port}" for port, name in enumerate(LISTENERS, 1)),
    }
    broker = config.parse(given | own)
    assert [broker.has_sasl(name) for name in LISTENERS] == [False, True, True, True]
    assert [broker.has_tls(name) for name in LISTENERS] == [False, *[has_tls] * 3]
    assert [security.has_tls(name, plan(chosen)) for name in LISTENERS] == [False, *[has_tls] * 3]
    lifetimes = [broker.for_listener(name).connections_max_reauth_ms for name in LISTENERS]
    assert lifetimes == [0, 5000, 5000, 0]


@pytest.mark.parametrize("chosen", ["scram", "scram-tls"])
def test_both_libraries_accept_the_properties(chosen: str, tmp_path: Any) -> None:
    """librdkafka and aiokafka authenticate by the mechanism of the clients' listener."""
    trust = Authority(tmp_path).trust
    properties = security.client_properties(plan(chosen), trust)
    assert connection_refusal(properties) is None
    arguments = connection_arguments(properties)
    wanted = security.PROTECTIONS[chosen]
    assert (arguments["security_protocol"], arguments["sasl_mechanism"]) == wanted
