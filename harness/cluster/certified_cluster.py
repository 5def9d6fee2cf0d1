"""A cluster whose brokers have certificates of an authority that was made for the run.

The private keys of the authorities exist in memory only. Every broker has one key store file in its
folder, which is replaced when its certificate is.
"""

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from harness.cluster import access, security
from harness.cluster.authority import Authority
from harness.cluster.guarded_cluster import GuardedCluster
from harness.cluster.observe import login
from harness.cluster.settings import CLIENT_LISTENER, PEER_LISTENER
from model import roles
from model.capabilities.security import Certificate, Handshake
from model.roles import NodeId


class CertifiedCluster(GuardedCluster):
    """A cluster whose listeners a plan may encrypt."""

    _authorities: Mapping[Certificate, Authority] = {}

    # --- implemented by targets

    @abc.abstractmethod
    def _certified_hosts(self, node: NodeId) -> Sequence[str]:
        """The host names and addresses at which clients and brokers reach a broker."""

    async def _hand_over(self, node: NodeId, key_store: Path) -> PurePath:
        """Give a broker its new key store, and return the path at which it finds the file."""
        return key_store

    # --- CanReplaceCertificates

    async def replace_certificate(self, node: NodeId, certificate: Certificate) -> bool:
        self._issue(node, certificate)
        path = str(await self._hand_over(node, self._key_store(node)))
        listeners = (CLIENT_LISTENER, PEER_LISTENER)
        return await access.use_key_store(self.direct(node), roles.number(node), listeners, path)

    async def handshake(self, node: NodeId) -> Handshake:
        context = self._authorities["valid"].client_context()
        return await login.handshake(self._guarded(node), context)

    # --- implementation

    def _issue_certificates(self) -> None:
        """Create the authorities and a key store for every broker, if the plan needs them."""
        chosen = security.of(self._plan)
        if chosen is None or not chosen.has_tls:
            return
        own = Authority(self._trust.parent, self._trust.stem)
        foreign = Authority(self._trust.parent, "foreign-authority")
        self._authorities = {"valid": own, "expired": own, "foreign": foreign}
        for node in self.brokers:
            self._folder_of(node).mkdir(parents=True, exist_ok=True)
            (self._folder_of(node) / security.TRUST_STORE).write_bytes(own.trust.read_bytes())
            self._issue(node, "valid")

    def _issue(self, node: NodeId, certificate: Certificate) -> None:
        """Replace the key store of a broker in one step."""
        store = self._key_store(node)
        new = self._authorities[certificate].issue(
            node,
            hosts=self._certified_hosts(node),
            is_expired=certificate == "expired",
            to=store.with_suffix(".new"),
        )
        new.replace(store)

    def _key_store(self, node: NodeId) -> Path:
        return self._folder_of(node).resolve() / security.KEY_STORE
