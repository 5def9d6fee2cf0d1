"""The system of a user's cluster is what the cluster reports."""

import random
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.external.system import ExternalSystem
from harness.cluster.node import ClusterError
from model.plan import Plan
from nemesis.catalogue import NEMESES
from tests.harness.cluster.external.conftest import surveyed


def test_facts(tmp_path: Path) -> None:
    """Nodes and timeouts are the cluster's; the plan records the file and the guessed release."""
    system = ExternalSystem(surveyed(tmp_path, "start_s = 2.5", release="3.9"))
    assert system.layout(Plan()).brokers == ("broker-1", "broker-2", "broker-3")
    assert (system.start_s, system.session_timeout_s(Plan())) == (2.5, 18.0)
    assert set(system.versions) == {"cluster-file", "cluster-file-sha256", "apache-kafka"}
    assert system.refusal(Plan()) is None
    assert (system.listeners("broker-1", Plan()), [*system.links(Plan())]) == ((), [])


def test_operators_need_a_release_that_has_their_requests(tmp_path: Path) -> None:
    old = ExternalSystem(surveyed(tmp_path, "", apis={43: (0, 2)}))
    assert not old.offers(NEMESES["admin"])
    assert old.offers(NEMESES["kill"])
    assert ExternalSystem(surveyed(tmp_path, "")).offers(NEMESES["admin"])


def test_no_program_is_run(tmp_path: Path) -> None:
    system: Any = ExternalSystem(surveyed(tmp_path, ""))
    with pytest.raises(ClusterError, match="the user starts the nodes"):
        system.program(None, Plan())
    with pytest.raises(ClusterError, match="the user starts the nodes"):
        system.view({}, random.Random(1))
