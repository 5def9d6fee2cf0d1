"""Checks of listeners: their names, their protocols, and what each protocol needs."""

from broker_impl.config.broker_config import BrokerConfig
from broker_impl.config.security import MECHANISMS, PEM, PROTOCOLS, REFUSED
from broker_impl.errors import ConfigError


def check_listeners(config: BrokerConfig) -> None:
    """Raise ConfigError if the listeners contradict each other or lack what protects them."""
    names = [endpoint.name for endpoint in config.endpoints()]
    if not names:
        raise ConfigError("listeners: at least one listener is needed")
    if len(set(names)) < len(names):
        raise ConfigError("listeners: the name of a listener may occur only once")
    protocols = config.security_protocols()
    for name in names:
        if protocols.get(name) not in PROTOCOLS:
            raise ConfigError(
                f"listener {name}: listener.security.protocol.map must map it to one of "
                f"{', '.join(PROTOCOLS)}"
            )
    for endpoint in config.advertised():
        if endpoint.name not in names:
            raise ConfigError(f"advertised.listeners: {endpoint.name} is not one of the listeners")
    for name in names:
        check_tls(config, name)
        if config.has_sasl(name):
            _check_sasl(config.for_listener(name), name)
    _check_inter_broker(config, names)
    if any(config.has_tls(name) or config.has_sasl(name) for name in names):
        _check_refused(config)


def _check_inter_broker(config: BrokerConfig, names: list[str]) -> None:
    own = config.inter_broker_listener()
    if config.inter_broker_listener_name and "security.inter.broker.protocol" in config.given:
        raise ConfigError(
            "inter.broker.listener.name and security.inter.broker.protocol: only one may be set"
        )
    if own not in names:
        setting = (
            f"inter.broker.listener.name={config.inter_broker_listener_name}"
            if config.inter_broker_listener_name
            else f"security.inter.broker.protocol={own}"
        )
        raise ConfigError(f"{setting}: this is not one of the listeners")
    if not config.has_sasl(own):
        return
    mechanism = config.sasl_mechanism_inter_broker_protocol
    if mechanism not in config.for_listener(own).sasl_enabled_mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol={mechanism}: sasl.enabled.mechanisms of "
            f"listener {own} must contain it"
        )
    if not config.login(own, mechanism).username:
        raise ConfigError(
            f"listener.name.{own.lower()}.{mechanism.lower()}.sasl.jaas.config: must have the "
            "username and password of this broker"
        )


def check_tls(config: BrokerConfig, listener: str) -> None:
    """Raise ConfigError if a listener uses TLS, and lacks a key store or a trust store for it."""
    if not config.has_tls(listener):
        return
    config = config.for_listener(listener)
    if config.ssl_keystore_type != PEM or not config.ssl_keystore_location:
        raise ConfigError(
            f"listener {listener}: needs ssl.keystore.type=PEM and ssl.keystore.location"
        )
    trusts = config.ssl_truststore_location or config.ssl_truststore_certificates
    if trusts and config.ssl_truststore_type != PEM:
        raise ConfigError(f"listener {listener}: ssl.truststore.type must be PEM")
    if config.ssl_client_auth != "none" and not trusts:
        raise ConfigError(
            f"listener {listener}: ssl.client.auth={config.ssl_client_auth} needs "
            "ssl.truststore.location or ssl.truststore.certificates"
        )


def _check_sasl(config: BrokerConfig, listener: str) -> None:
    """config: with the listener's own settings."""
    for mechanism in config.sasl_enabled_mechanisms:
        if mechanism not in MECHANISMS:
            raise ConfigError(
                f"listener {listener}: sasl.enabled.mechanisms has {mechanism}; this broker "
                f"implements {', '.join(MECHANISMS)}"
            )
    if not config.sasl_enabled_mechanisms:
        raise ConfigError(f"listener {listener}: sasl.enabled.mechanisms must not be empty")
    if "PLAIN" in config.sasl_enabled_mechanisms and not config.login(listener, "PLAIN").users:
        raise ConfigError(
            f"listener.name.{listener.lower()}.plain.sasl.jaas.config: must have users"
        )


def _check_refused(config: BrokerConfig) -> None:
    """Refuse what would protect a listener in Kafka, and does not in this broker."""
    for name in config.inactive:
        if name in REFUSED or (name.startswith("listener.name.") and name.endswith(REFUSED)):
            raise ConfigError(f"{name}: this broker does not act on it, and a listener needs it")
