"""Settings of TLS, of authentication by SASL, and of authorization by ACLs."""

from dataclasses import dataclass
from typing import Final

from broker_impl.config.setting import INT32_MAX, key
from broker_impl.kafka_settings import Kind

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
"""The security protocols of listeners."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The SASL mechanisms that this broker implements."""
AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
FORMER_AUTHORIZER: Final = "kafka.security.auth.SimpleAclAuthorizer"
"""The name before Kafka 2.4, which Kafka 2.8 still accepts for the same authorizer."""
"""The value of ``authorizer.class.name``: the name of Kafka's own class."""
PEM: Final = "PEM"
ZOOKEEPER_JAAS: Final = "faultline.zookeeper.sasl.jaas.config"
"""The setting with the broker's login at ZooKeeper."""

REFUSED: Final = (
    "connections.max.reauth.ms",  # of one mechanism: the others are read
    "principal.builder.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
    "security.providers",
    "ssl.cipher.suites",
    "ssl.engine.factory.class",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.principal.mapping.rules",
    "ssl.truststore.password",
)
"""Settings on which this broker does not act, and without which a listener would be less safe."""


@dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Settings of listeners with TLS, each also for one listener: ``listener.name.X.ssl.…``."""

    ssl_keystore_type: str = key(
        "ssl.keystore.type", "JKS", "The form of the key store; listeners with TLS need PEM."
    )
    ssl_keystore_location: str = key(
        "ssl.keystore.location", "", "The PEM file with the private key and its certificates."
    )
    ssl_key_password: str = key(
        "ssl.key.password", "", "The password of an encrypted private key.", kind=Kind.PASSWORD
    )
    ssl_truststore_type: str = key(
        "ssl.truststore.type", "JKS", "The form of the trust store; listeners with TLS need PEM."
    )
    ssl_truststore_location: str = key(
        "ssl.truststore.location", "", "The PEM file with the certificates of trusted authorities."
    )
    ssl_truststore_certificates: str = key(
        "ssl.truststore.certificates",
        "",
        "Certificates of trusted authorities as PEM text.",
        kind=Kind.PASSWORD,
    )
    ssl_client_auth: str = key(
        "ssl.client.auth",
        "none",
        "Whether clients must have a certificate.",
        one_of=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = key(
        "ssl.enabled.protocols",
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS that are accepted.",
        one_of=("TLSv1.2", "TLSv1.3"),
        pattern=r".+",
        form="at least one version",
    )
    ssl_endpoint_identification_algorithm: str = key(
        "ssl.endpoint.identification.algorithm",
        "https",
        "Whether brokers check the host name in a broker's certificate; empty: they do not.",
        one_of=("https", "HTTPS", ""),
    )


@dataclass(frozen=True, kw_only=True)
class SaslSettings:
    """Settings of listeners with SASL."""

    security_inter_broker_protocol: str = key(
        "security.inter.broker.protocol",
        PLAINTEXT,
        "Names the inter-broker listener by its protocol, without inter.broker.listener.name.",
        one_of=PROTOCOLS,
    )
    sasl_enabled_mechanisms: tuple[str, ...] = key(
        "sasl.enabled.mechanisms",
        ("GSSAPI",),
        "The mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.",
    )
    sasl_mechanism_inter_broker_protocol: str = key(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "The mechanism by which brokers authenticate to each other.",
    )
    sasl_server_max_receive_size: int = key(
        "sasl.server.max.receive.size",
        524_288,
        "Maximum size of a request before its client is authenticated.",
        low=1,
    )
    connections_max_reauth_ms: int = key(
        "connections.max.reauth.ms",
        0,
        "Clients authenticate again within this time; 0: never (KIP-368).",
        low=0,
        kind=Kind.LONG,
    )
    connection_failed_authentication_delay_ms: int = key(
        "connection.failed.authentication.delay.ms",
        100,
        "How long the broker delays the response to a failed authentication.",
        low=0,
        high=INT32_MAX,
    )


@dataclass(frozen=True, kw_only=True)
class AuthorizerSettings:
    """Settings of authorization by ACLs."""

    authorizer_class_name: str = key(
        "authorizer.class.name",
        "",
        "Kafka's AclAuthorizer, also by its former name, or none: every client may do everything.",
        one_of=("", AUTHORIZER, FORMER_AUTHORIZER),
    )
    super_users: str = key(
        "super.users", "", "Principals that may do everything: User:NAME;User:NAME."
    )
    allow_everyone_if_no_acl_found: bool = key(
        "allow.everyone.if.no.acl.found",
        False,
        "Whether everyone may use a resource for which no ACL exists.",
    )


@dataclass(frozen=True, kw_only=True)
class ZooKeeperSecuritySettings:
    """Settings of the broker's access to ZooKeeper."""

    zookeeper_set_acl: bool = key(
        "zookeeper.set.acl",
        False,
        "Whether only brokers may change the znodes that brokers create.",
    )
    zookeeper_jaas: str = key(
        ZOOKEEPER_JAAS,
        "",
        "The login at ZooKeeper by DIGEST-MD5, as in the section Client of a JAAS file.",
        kind=Kind.PASSWORD,
    )


@dataclass(frozen=True, kw_only=True)
class SecuritySettings(AuthorizerSettings, SaslSettings, TlsSettings, ZooKeeperSecuritySettings):
    """All settings of security."""
