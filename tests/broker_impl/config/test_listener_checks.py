import pytest

from broker_impl import config
from broker_impl.errors import ConfigError

MINIMAL = {"broker.id": "1", "zookeeper.connect": "127.0.0.1:2181"}
TLS = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "key.pem"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = {
    "listeners": "SASL_SSL://h:1",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} username=a password=b user_a=b;",
} | TLS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"listeners": "SSL://h:1"}, "needs ssl.keystore.type=PEM and ssl.keystore.location"),
        ({"listeners": "SSL://h:1"} | TLS | {"ssl.keystore.type": "JKS"}, "ssl.keystore.type=PEM"),
        (
            {"listeners": "SSL://h:1", "ssl.client.auth": "required"} | TLS,
            "needs ssl.truststore.location",
        ),
        (
            {"listeners": "SSL://h:1", "ssl.truststore.location": "x"} | TLS,
            "ssl.truststore.type must be PEM",
        ),
        (SASL | {"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "has GSSAPI; this broker implements"),
        (SASL | {"sasl.enabled.mechanisms": ""}, "must not be empty"),
        (SASL | {"sasl.mechanism.inter.broker.protocol": "GSSAPI"}, "must contain it"),
        (
            SASL | {"listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} user_a=b;"},
            "must have the username and password of this broker",
        ),
        (
            SASL
            | {"listener.name.sasl_ssl.plain.sasl.jaas.config": f"{PLAIN} username=a password=b;"},
            "must have users",
        ),
        (SASL | {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "ssl.cipher.suites: this broker"),
        (
            SASL | {"listener.name.sasl_ssl.ssl.principal.mapping.rules": "DEFAULT"},
            "ssl.principal.mapping.rules: this broker",
        ),
        (
            SASL | {"listener.name.sasl_ssl.plain.connections.max.reauth.ms": "1000"},
            "listener.name.sasl_ssl.plain.connections.max.reauth.ms: this broker",
        ),
        ({"security.inter.broker.protocol": "SSL"}, "this is not one of the listeners"),
        (
            {
                "security.inter.broker.protocol": "PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
            },
            "only one may be set",
        ),
        ({"authorizer.class.name": "org.example.Mine"}, "must be one of"),
    ],
)
def test_a_door_without_a_lock_is_refused(settings: dict[str, str], message: str) -> None:
    """A protected listener needs what protects it; settings without effect are refused there."""
    with pytest.raises(ConfigError) as caught:
        config.parse(MINIMAL | settings)
    assert message in str(caught.value)


def test_a_listener_has_its_own_settings() -> None:
    """``listener.name.X.`` overrides a setting for one listener only; both forms can be mixed."""
    parsed = config.parse(
        MINIMAL
        | SASL
        | {
            "listeners": "SASL_SSL://h:1,SSL://h:2,PLAINTEXT://h:3",
            "listener.name.ssl.ssl.keystore.location": "other.pem",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "trust.pem",
        }
    )
    assert parsed.for_listener("SASL_SSL").ssl_keystore_location == "key.pem"
    assert parsed.for_listener("SSL").ssl_keystore_location == "other.pem"
    assert parsed.for_listener("SSL").ssl_client_auth == "required"
    assert parsed.ssl_client_auth == "none"
    assert [parsed.has_tls(name) for name in ("SASL_SSL", "SSL", "PLAINTEXT")] == [
        True,
        True,
        False,
    ]
    assert [parsed.has_sasl(name) for name in ("SASL_SSL", "SSL")] == [True, False]
    assert parsed.inactive == {}
    assert "password" not in repr(parsed).replace("ssl_key_password", "")


@pytest.mark.parametrize("prefix", ["", "listener.name.sasl_ssl."])
def test_the_time_to_authenticate_again_is_of_all_mechanisms(prefix: str) -> None:
    """KIP-368: the setting applies as one of all listeners or of one, if not of one mechanism."""
    parsed = config.parse(MINIMAL | SASL | {f"{prefix}connections.max.reauth.ms": "1000"})
    assert parsed.for_listener("SASL_SSL").connections_max_reauth_ms == 1000


def test_the_protocol_names_the_listener_of_brokers() -> None:
    """``security.inter.broker.protocol`` selects the listener of this name, as in Kafka."""
    listeners = {"listeners": "PLAINTEXT://h:3,SSL://h:1"} | TLS
    assert config.parse(MINIMAL | listeners).inter_broker_listener() == "PLAINTEXT"
    chosen = config.parse(MINIMAL | listeners | {"security.inter.broker.protocol": "SSL"})
    assert chosen.inter_broker_listener() == "SSL"


def test_plaintext_listeners_ignore_what_protects_others() -> None:
    """A file with key stores still starts where every listener is PLAINTEXT, as in Kafka."""
    parsed = config.parse(MINIMAL | {"ssl.keystore.type": "JKS", "ssl.cipher.suites": "x"})
    assert parsed.endpoints()[0].name == "PLAINTEXT"
