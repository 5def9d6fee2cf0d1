"""The system of the target ``external``: whatever the user runs, as it reports itself."""

import random
from collections.abc import Iterator, Mapping
from typing import NoReturn

from harness.cluster.address import Address
from harness.cluster.external.survey import Survey
from harness.cluster.links import LinkSpec
from harness.cluster.node import ClusterError
from harness.cluster.observe.metadata_view import MetadataView
from harness.cluster.system import Place, Program, System
from model.capabilities.control_plane import CanAdminister
from model.layout import Layout
from model.plan import Plan
from model.roles import NodeId
from nemesis.package import Package

NAME = "external"
_ELECT_LEADERS, _REASSIGN = (43, 1), (45, 0)
"""The API keys and versions of an operator's requests."""


class ExternalSystem(System):
    """The programs of a cluster that was there before the run."""

    name = NAME
    broker: Mapping[str, str] = {}

    def __init__(self, survey: Survey) -> None:
        self._survey = survey
        self.start_s = survey.loaded.content.start_s

    def layout(self, plan: Plan) -> Layout:
        return self._survey.layout

    def session_timeout_s(self, plan: Plan) -> float:
        return self._survey.session_timeout_s

    def refusal(self, plan: Plan) -> str | None:
        return None

    def offers(self, package: Package) -> bool:
        """Return whether the release has the requests of an operator, if the faults need them."""
        apis = self._survey.apis
        has_them = all(version in apis.get(key, ()) for key, version in (_ELECT_LEADERS, _REASSIGN))
        return has_them or CanAdminister not in package.needs

    @property
    def versions(self) -> Mapping[str, str]:
        """The name and the digest of the cluster file, and the guessed release."""
        loaded, facts = self._survey.loaded, self._survey.facts
        return {
            "cluster-file": loaded.path.name,
            "cluster-file-sha256": loaded.digest,
            **({"apache-kafka": f"about {facts.release}"} if facts.release else {}),
        }

    def listeners(self, node: NodeId, plan: Plan) -> tuple[str, ...]:
        return ()

    def links(self, plan: Plan) -> Iterator[LinkSpec]:
        return iter(())

    def program(self, place: Place, plan: Plan) -> Program:
        _refuse_start()

    def view(self, addresses: Mapping[NodeId, Address], rng: random.Random) -> MetadataView:
        _refuse_start()


def _refuse_start() -> NoReturn:
    raise ClusterError("the user starts the nodes of an external cluster")
