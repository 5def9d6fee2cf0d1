"""The option ``security`` of a plan: how the listeners of this project's brokers are protected.

A protected cluster has one listener more, ``HARNESS``, for measurements and operators; its clients
are the super user ``User:ANONYMOUS``. The clients of workloads authenticate by SCRAM, and have the
rights that :mod:`harness.cluster.access` gives them. Brokers authenticate to each other by PLAIN.
The passwords protect nothing beyond a run, whose brokers are reachable from this machine only.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from broker_impl.config import AUTHORIZER
from harness.cluster.settings import CLIENT_LISTENER, PEER_LISTENER
from model.capabilities.network import CanInterceptMessages
from model.capabilities.security import (
    CanChangeCredentials,
    CanChangeRights,
    CanReplaceCertificates,
)
from model.plan import Plan

OPTION: Final = "security"
NONE, SCRAM, SCRAM_TLS = "none", "scram", "scram-tls"
HARNESS_LISTENER: Final = "HARNESS"
"""The listener without authentication."""
USER, PASSWORD, WRONG_PASSWORD = "workload", "workload-secret", "another-secret"
"""The user of all clients of workloads, its password, and what a fault replaces that by."""
REAUTH_MS: Final = 5000
"""After this time a client must authenticate again (KIP-368), and notices a changed password."""
KEY_STORE, TRUST_STORE = "key-store.pem", "authority.pem"
"""The files in the folder of a broker."""
CLIENT_FILE: Final = "client.properties"
"""The file with what a client must know, by librdkafka's names."""
_BROKER_USER: Final = "broker"
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class Protection(NamedTuple):
    """How listeners are protected."""

    protocol: str
    mechanism: str
    """The mechanism of SCRAM by which clients authenticate."""

    @property
    def has_tls(self) -> bool:
        """Are the listeners encrypted?"""
        return self.protocol == "SASL_SSL"


PROTECTIONS: Final[Mapping[str, Protection]] = {
    SCRAM: Protection("SASL_PLAINTEXT", "SCRAM-SHA-256"),
    SCRAM_TLS: Protection("SASL_SSL", "SCRAM-SHA-512"),
}


def refusal(options: Mapping[str, Any]) -> str | None:
    """Return why the option is invalid; ``None`` if it is valid."""
    chosen = options.get(OPTION, NONE)
    if chosen in (NONE, *PROTECTIONS):
        return None
    return f"options: {OPTION}={chosen}: must be {NONE}, {SCRAM} or {SCRAM_TLS}"


def of(plan: Plan) -> Protection | None:
    """Return the protection of a plan's brokers; ``None`` if every client may do everything."""
    return PROTECTIONS.get(plan.options.get(OPTION, NONE))


def withholds(capability: type, plan: Plan) -> bool:
    """Return whether the protection of a plan's cluster takes a capability of its class away."""
    chosen = of(plan)
    if capability in (CanChangeCredentials, CanChangeRights):
        return chosen is None
    if capability is CanReplaceCertificates:
        return chosen is None or not chosen.has_tls
    # The harness cannot read an encrypted request.
    return capability is CanInterceptMessages and chosen is not None and chosen.has_tls


def listeners(usual: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """Return the listeners of a broker, the one that is probed first; ``usual``: without it."""
    return tuple(usual) if of(plan) is None else (HARNESS_LISTENER, *usual)


def has_tls(listener: str, plan: Plan) -> bool:
    """Return whether a listener of a broker is encrypted."""
    chosen = of(plan)
    is_protected = listener == PEER_LISTENER or listener.startswith(CLIENT_LISTENER)
    return chosen is not None and chosen.has_tls and is_protected


def broker_settings(plan: Plan, names: Sequence[str], folder: PurePath) -> dict[str, str]:
    """Return the settings that protect the listeners with these names.

    ``folder`` has the key store and the trust store, as the broker sees it.
    """
    chosen = of(plan)
    if chosen is None:
        return {}
    guarded = [name for name in names if name.startswith(CLIENT_LISTENER)]
    protocols = {
        name: chosen.protocol if name == PEER_LISTENER or name in guarded else "PLAINTEXT"
        for name in names
    }
    peer = f"listener.name.{PEER_LISTENER.lower()}"
    own = {
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:ANONYMOUS;User:{_BROKER_USER}",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        f"{peer}.sasl.enabled.mechanisms": "PLAIN",
        f"{peer}.plain.sasl.jaas.config": (
            f'{_PLAIN_MODULE} username="{_BROKER_USER}" password="{_BROKER_USER}-secret"'
            f' user_{_BROKER_USER}="{_BROKER_USER}-secret";'
        ),
    }
    for name in guarded:
        of_listener = f"listener.name.{name.lower()}"
        own[f"{of_listener}.sasl.enabled.mechanisms"] = chosen.mechanism
        own[f"{of_listener}.connections.max.reauth.ms"] = str(REAUTH_MS)
    if chosen.has_tls:
        own |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(folder / KEY_STORE),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(folder / TRUST_STORE),
        }
    return own


def client_properties(plan: Plan, trust: PurePath) -> dict[str, str]:
    """Return the settings of clients, by librdkafka's names; ``trust``: the trusted authority."""
    chosen = of(plan)
    if chosen is None:
        return {}
    own = {
        "security.protocol": chosen.protocol,
        "sasl.mechanism": chosen.mechanism,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    return {**own, "ssl.ca.location": str(trust)} if chosen.has_tls else own
