"""A certificate authority of one run: keys and certificates in PEM files, also expired ones."""

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BEGIN = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
END = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
EXPIRED = BEGIN + datetime.timedelta(days=1)
LOOPBACK = "127.0.0.1"


class Authority:
    """An authority with one root certificate, whose private key exists in memory only."""

    def __init__(
        self, folder: Path, name: str = "authority", organization: str = "Faultline"
    ) -> None:
        """Write the root certificate to ``folder/name.pem``."""
        self.folder = folder
        self._organization = organization
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        root = self._builder(self._name, self._key.public_key(), END).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.trust = folder / f"{name}.pem"
        """The file with the root certificate."""
        self.trust.write_bytes(_pem(root.sign(self._key, hashes.SHA256())))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, end: datetime.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(BEGIN)
            .not_valid_after(end)
        )

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = (LOOPBACK,),
        is_expired: bool = False,
        to: Path | None = None,
    ) -> Path:
        """Write a private key and its certificate into one file, as Kafka's PEM key store.

        The certificate is for these host names and IP addresses. The file is ``to``, by default
        ``NAME.pem`` in the folder of the authority.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, self._organization),
                x509.NameAttribute(NameOID.COMMON_NAME, name),
            ]
        )
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        certificate = (
            self._builder(subject, key.public_key(), EXPIRED if is_expired else END)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = to or self.folder / f"{name}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(private + _pem(certificate))
        return path

    def client_context(self, key: Path | None = None) -> ssl.SSLContext:
        """Return a client's context, which trusts this authority."""
        context = ssl.create_default_context(cafile=str(self.trust))
        if key is not None:
            context.load_cert_chain(str(key))
        return context


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
