"""The faults that a cluster file makes possible, and what is missing for the others."""

from pathlib import Path
from typing import Any

import pytest

from harness.cluster.external import kinds
from model.capabilities.control_plane import CanAdminister, HasHealth, HasRoles
from model.capabilities.network import CanCut, CanDisconnect, CanRefuse, CanSlow, HasLinks
from model.capabilities.processes import CanKill, CanPause, CanRestart, HasProcesses
from nemesis.catalogue import NEMESES
from tests.harness.cluster.external.conftest import surveyed

ALWAYS = {HasProcesses, HasLinks, HasRoles, HasHealth, CanAdminister}
SOMETIMES = {CanKill, CanRestart, CanPause, CanCut, CanRefuse, CanSlow, CanDisconnect}


def hooks(*verbs: str) -> str:
    return "[hooks]\n" + "".join(f'{verb} = ["x"]\n' for verb in verbs)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("", set()),
        (hooks("kill"), set()),
        (hooks("kill", "start"), {CanKill}),
        (hooks("kill", "start", "stop"), {CanKill, CanRestart}),
        (hooks("pause", "resume"), {CanPause}),
        (hooks("cut", "heal"), set()),
        (hooks("cut", "heal", "reach"), {CanCut}),
        (hooks("disconnect", "reconnect", "status"), {CanDisconnect}),
        ('toxiproxy = "http://t:1"', {CanCut, CanRefuse, CanSlow}),
        (f'toxiproxy = "t:1"\n{hooks("cut", "heal", "reach")}', {CanCut, CanRefuse, CanSlow}),
    ],
)
def test_capabilities(tmp_path: Path, text: str, offered: set[type]) -> None:
    """Observation is always possible; a fault is if there are hooks for applying and healing it."""
    kind = kinds.kind_of(surveyed(tmp_path, text))
    made: Any = kind  # to the type checker every cluster of this class has all of them
    assert {each for each in ALWAYS if issubclass(made, each)} == ALWAYS
    assert {each for each in SOMETIMES if issubclass(made, each)} == offered


def test_a_hook_of_one_node_only(tmp_path: Path) -> None:
    """A fault may affect any node, so a hook must exist for each."""
    text = '[nodes.broker-2]\nhooks.pause = ["x"]\n[hooks]\nresume = ["x"]\n'
    why = kinds.lacking(surveyed(tmp_path, text), NEMESES["pause"])
    assert why == "the cluster file has no hook for pause of broker-1, broker-3"


@pytest.mark.parametrize(
    ("nemesis", "text", "why"),
    [
        ("pause", "", "the cluster file has no hook for pause and resume"),
        ("pause", hooks("pause", "resume"), None),
        ("kill", hooks("kill"), "the cluster file has no hook for start"),
        (
            "partition",
            hooks("cut"),
            "the cluster file has no hook for heal and reach, and no toxiproxy",
        ),
        ("slow", hooks("cut", "heal", "reach"), "the cluster file has no toxiproxy"),
        ("clock", "", "the target external does not offer it"),
        ("zookeeper", hooks("kill", "start"), "the cluster file has no such nodes"),
        ("admin", "", None),
    ],
)
def test_what_is_missing(tmp_path: Path, nemesis: str, text: str, why: str | None) -> None:
    """One phrase names the hooks that a nemesis lacks."""
    assert kinds.lacking(surveyed(tmp_path, text), NEMESES[nemesis]) == why


def test_a_release_without_the_requests_of_operators(tmp_path: Path) -> None:
    found = surveyed(tmp_path, "", apis={3: (0, 5)})
    assert kinds.lacking(found, NEMESES["admin"]) == (
        "the cluster's release does not have the requests of operators (KIP-455)"
    )


def test_addresses_that_are_missing(tmp_path: Path) -> None:
    """Other nodes than brokers need an address or a status, and proxied brokers an address."""
    assert list(kinds.addresses_missing(surveyed(tmp_path, ""))) == []
    found = surveyed(tmp_path, "[nodes.zookeeper]")
    assert list(kinds.addresses_missing(found)) == [
        "nodes.zookeeper: it needs an address or a hook for status"
    ]
    text = 'toxiproxy = "t:1"\n[nodes.broker-1]\naddress = "h:1"\n[nodes.broker-2]\naddress = "h:2"'
    assert list(kinds.addresses_missing(surveyed(tmp_path, text))) == [
        "nodes.broker-3.address: with toxiproxy, name the address past the proxies"
    ]
