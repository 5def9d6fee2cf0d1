"""TLS contexts of listeners and of connections to other brokers, from PEM files."""

import ssl
from pathlib import Path
from typing import Final

from broker_impl.config import BrokerConfig, check_tls
from broker_impl.errors import ConfigError

HANDSHAKE_S: Final = 10.0
"""How long the handshake of a connection may take."""
SHUTDOWN_S: Final = 5.0
"""How long the peer of a closed connection may take to close it, too."""
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def listener_context(config: BrokerConfig, listener: str) -> ssl.SSLContext | None:
    """Return the context of a listener, or None if the listener does not use TLS."""
    if not config.has_tls(listener):
        return None
    own = config.for_listener(listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, own)
    _load_key(context, own, listener)
    context.verify_mode = _CLIENT_AUTH[own.ssl_client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _load_trust(context, own, listener)
    return context


class KeyStores:
    """The TLS contexts of a broker, whose keys are replaced while it runs (KIP-226).

    Connections that exist keep their key. The file of a key store is read again at every change of
    this broker's settings, also if its path is the same.
    """

    def __init__(self) -> None:
        self._now: dict[str, ssl.SSLContext] = {}
        """By listener: the context whose key new connections are shown."""

    def serve(self, config: BrokerConfig, listener: str) -> ssl.SSLContext | None:
        """Return the context of a listener's socket; None if the listener does not use TLS."""
        context = listener_context(config, listener)
        if context is not None:
            self._now[listener] = context

            def choose(connection: ssl.SSLObject, name: str | None, first: ssl.SSLContext) -> None:
                connection.context = self._now[listener]

            context.sni_callback = choose  # called for clients that name no server, too
        return context

    def reload(self, config: BrokerConfig, peers: ssl.SSLContext | None = None) -> None:
        """Read the key stores of all listeners again, and for ``peers`` the inter-broker one.

        A ConfigError leaves everything as it was.
        """
        read = {listener: listener_context(config, listener) for listener in self._now}
        self._now = {listener: context for listener, context in read.items() if context is not None}
        listener = config.inter_broker_listener()
        if peers is not None and listener in self._now:
            _load_key(peers, config.for_listener(listener), listener)


def check_key_stores(config: BrokerConfig) -> None:
    """Raise ConfigError if a listener with TLS has no usable key store."""
    for endpoint in config.endpoints():
        check_tls(config, endpoint.name)
        listener_context(config, endpoint.name)


def peer_context(config: BrokerConfig) -> ssl.SSLContext | None:
    """Return the context of connections to other brokers, or None if they do not use TLS."""
    listener = config.inter_broker_listener()
    if not config.has_tls(listener):
        return None
    own = config.for_listener(listener)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _set_versions(context, own)
    context.check_hostname = bool(own.ssl_endpoint_identification_algorithm)
    _load_key(context, own, listener)
    if own.ssl_truststore_location or own.ssl_truststore_certificates:
        _load_trust(context, own, listener)
    else:
        context.load_default_certs()
    return context


def _set_versions(context: ssl.SSLContext, config: BrokerConfig) -> None:
    versions = [_VERSIONS[name] for name in config.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _load_key(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    path = config.ssl_keystore_location
    try:
        context.load_cert_chain(path, password=lambda: config.ssl_key_password)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"listener {listener}: ssl.keystore.location={path} has no usable private key and "
            f"certificate: {error}"
        ) from error


def _load_trust(context: ssl.SSLContext, config: BrokerConfig, listener: str) -> None:
    try:
        if config.ssl_truststore_location:
            text = Path(config.ssl_truststore_location).read_text()
        else:
            text = config.ssl_truststore_certificates
        context.load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"listener {listener}: the trust store has no usable certificate: {error}"
        ) from error
