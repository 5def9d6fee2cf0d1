"""A cluster whose brokers have certificates of an authority that was made for the run.

The private keys of the authorities exist in memory only. Every broker has one key store file in its
folder, which is replaced when its certificate is.
"""

from collections.abc import Mapping
from pathlib import Path

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

    # --- CanReplaceCertificates

    async def replace_certificate(self, node: NodeId, certificate: Certificate) -> bool:
        self._issue(node, certificate)
        at, number, path = self.direct(node), roles.number(node), str(self._key_store(node))
        listeners = (CLIENT_LISTENER, PEER_LISTENER)
        return await access.use_key_store(at, number, listeners, path)

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
            (self._folder_of(node) / security.TRUST_STORE).write_bytes(own.trust.read_bytes())
            self._issue(node, "valid")

    def _issue(self, node: NodeId, certificate: Certificate) -> None:
        """Replace the key store of a broker in one step."""
        store = self._key_store(node)
        new = self._authorities[certificate].issue(
            node,
            addresses=[self._guarded(node).host],
            is_expired=certificate == "expired",
            to=store.with_suffix(".new"),
        )
        new.replace(store)

    def _key_store(self, node: NodeId) -> Path:
        return self._folder_of(node).resolve() / security.KEY_STORE
