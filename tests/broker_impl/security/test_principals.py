from typing import Any

import pytest

from broker_impl.security import principals


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (((("commonName", "alice"),),), "CN=alice"),
        (
            (
                (("countryName", "CH"),),
                (("organizationName", "Tests, Inc"),),
                (("commonName", "alice"),),
            ),
            "CN=alice,O=Tests\\, Inc,C=CH",
        ),
        (((("commonName", "a"), ("userId", "b")),), "CN=a+UID=b"),
        (((("commonName", " #a "),),), "CN=\\ #a\\ "),
        (((("commonName", "#a"),),), "CN=\\#a"),
        (
            ((("commonName", "alice"),), (("emailAddress", "alice@example.org"),)),
            "1.2.840.113549.1.9.1=#1611616c696365406578616d706c652e6f7267,CN=alice",
        ),
        (((("serialNumber", "1" * 200),),), "2.5.4.5=#1381c8" + "31" * 200),
    ],
)
def test_the_subject_is_written_as_in_rfc_2253(subject: Any, name: str) -> None:
    """The most specific name is first, and special characters are escaped.

    The name with the address is that of Java's ``X500Principal.getName``.
    """
    assert principals.of_certificate({"subject": subject}) == f"User:{name}"


@pytest.mark.parametrize("certificate", [None, {}])
def test_a_client_without_a_certificate_is_anonymous(certificate: Any) -> None:
    """A client that shows no certificate, or none that is verified, is anonymous."""
    assert principals.of_certificate(certificate) == "User:ANONYMOUS"
