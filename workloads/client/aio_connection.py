"""Translates the settings of encryption and authentication to the arguments of aiokafka.

The names are librdkafka's. What aiokafka cannot do, is refused.
"""

import ssl
from collections.abc import Mapping
from typing import Any

from aiokafka.helpers import create_ssl_context

from workloads.client.aio_settings import BadSetting

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FILES: Mapping[str, str] = {
    "ssl.ca.location": "cafile",
    "ssl.certificate.location": "certfile",
    "ssl.key.location": "keyfile",
    "ssl.key.password": "password",
}
_NAMES = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.mechanisms"),
        *("sasl.username", "sasl.password", "ssl.endpoint.identification.algorithm"),
        *_FILES,
    }
)


def connection_arguments(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments that all clients of aiokafka need to connect.

    Raises :class:`~workloads.client.aio_settings.BadSetting`.
    """
    for name in properties:
        if name not in _NAMES:
            raise BadSetting(f"{name}: aiokafka has no such setting; use client = librdkafka")
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise BadSetting(f"security.protocol={protocol}: must be one of {', '.join(_PROTOCOLS)}")
    arguments: dict[str, Any] = {}
    if protocol != "PLAINTEXT":
        arguments["security_protocol"] = protocol
    if protocol.endswith("SSL"):
        arguments["ssl_context"] = ssl_context(properties)
    if protocol.startswith("SASL"):
        arguments |= _credentials(properties)
    return arguments


def ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of encrypted connections.

    Raises :class:`~workloads.client.aio_settings.BadSetting` for a file that cannot be used.
    """
    files = {argument: properties[name] for name, argument in _FILES.items() if name in properties}
    # Without a password, OpenSSL would ask for one at the terminal.
    password = files.pop("password", "")
    try:
        context: ssl.SSLContext = create_ssl_context(**files, password=password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        names = ", ".join(name for name in _FILES if name in properties and "password" not in name)
        raise BadSetting(f"{names or 'ssl'}: {error}") from None
    if properties.get("ssl.endpoint.identification.algorithm", "https").lower() in ("none", ""):
        context.check_hostname = False
    return context


def _credentials(properties: Mapping[str, str]) -> dict[str, str]:
    mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms", "")
    if mechanism not in _MECHANISMS:
        raise BadSetting(
            f"sasl.mechanism={mechanism}: must be one of {', '.join(_MECHANISMS)} for aiokafka"
        )
    arguments = {"sasl_mechanism": mechanism}
    for name, argument in (
        ("sasl.username", "sasl_plain_username"),
        ("sasl.password", "sasl_plain_password"),
    ):
        if name not in properties:
            raise BadSetting(f"{name}: it is missing")
        arguments[argument] = properties[name]
    return arguments
