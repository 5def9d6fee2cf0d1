"""Encryption and authentication of aiokafka, by librdkafka's names."""

import ssl
from pathlib import Path

import pytest

from workloads.client.aio_connection import connection_arguments
from workloads.client.aio_settings import BadSetting


def test_without_properties() -> None:
    """Without properties aiokafka gets no arguments, so that its clients stay as they are."""
    assert connection_arguments({}) == {}
    assert connection_arguments({"security.protocol": "plaintext"}) == {}


def test_credentials() -> None:
    """A mechanism, a user and a password become aiokafka's three arguments."""
    asked = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    assert connection_arguments(asked) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }


@pytest.mark.parametrize(("given", "checked"), [("https", True), ("none", False)])
def test_encryption(given: str, checked: bool) -> None:
    """The certificate is always verified; the name of the host unless the user says otherwise."""
    arguments = connection_arguments(
        {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": given}
    )
    context = arguments["ssl_context"]
    assert context.check_hostname is checked
    assert context.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"sasl.kerberos.keytab": "x"}, "sasl.kerberos.keytab: aiokafka has no such setting"),
        ({"security.protocol": "TLS"}, "security.protocol=TLS: must be one of PLAINTEXT"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "sasl.mechanism=OAUTHBEARER: must be one of PLAIN",
        ),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "sasl.username: it is missing",
        ),
    ],
)
def test_refused(properties: dict[str, str], why: str) -> None:
    """What aiokafka cannot do is refused in one sentence."""
    with pytest.raises(BadSetting, match=f"^{why}"):
        connection_arguments(properties)


def test_an_unusable_file(tmp_path: Path) -> None:
    """A file of certificates that does not exist is named by its setting."""
    missing = str(tmp_path / "ca.pem")
    with pytest.raises(BadSetting, match=r"^ssl\.ca\.location: .*No such file"):
        connection_arguments({"security.protocol": "SSL", "ssl.ca.location": missing})
