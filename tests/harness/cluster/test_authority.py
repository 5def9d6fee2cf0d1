"""Certificates of an authority: which of them a client verifies."""

import asyncio
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from harness.cluster.address import Address
from harness.cluster.authority import Authority
from harness.cluster.observe import login, probe


@pytest.mark.parametrize(
    ("kind", "said"), [("valid", "verified"), ("expired", "rejected"), ("foreign", "rejected")]
)
async def test_a_client_verifies_only_a_valid_certificate(
    kind: str, said: str, tmp_path: Path
) -> None:
    """An expired certificate and one of another authority are rejected; probes accept each."""
    own, foreign = Authority(tmp_path), Authority(tmp_path, "foreign")
    issuer = foreign if kind == "foreign" else own
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issuer.issue("broker", is_expired=kind == "expired"))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        request = await reader.readexactly(size)
        writer.write(b"\0\0\0\4" + request[4:8])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    address = Address(*server.sockets[0].getsockname()[:2])
    assert await login.handshake(address, own.client_context()) == said
    assert await probe.answers(address, "kafka-tls", 2.0)
    assert not await probe.answers(address, "kafka", 2.0)
    server.close()
    assert await login.handshake(address, own.client_context()) == "silence"


def test_a_certificate_is_for_names_and_addresses(tmp_path: Path) -> None:
    """Brokers in containers are reached by a name, and from this machine at an address."""
    store = Authority(tmp_path).issue("broker", hosts=["127.0.0.1", "toxiproxy"])
    [certificate] = x509.load_pem_x509_certificates(store.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["toxiproxy"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
