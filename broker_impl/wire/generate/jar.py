"""Reads the message schemas of the APIs that this project uses from Kafka's client jar."""

from dataclasses import replace
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from broker_impl.wire.generate.schema import Message, Versions, load, parse

FOLDER: Final = "common/message/"

API_KEYS: Final = frozenset(
    [
        *range(29),  # data, metadata, brokers among themselves, groups, transactions
        *range(29, 38),  # ACLs, configs, log directories, SASL, partitions
        *range(38, 42),  # delegation tokens
        *range(42, 52),  # groups, elections, configs, reassignment, offsets, quotas, SCRAM
        55,  # DescribeQuorum
        57,  # UpdateFeatures
        60,  # DescribeCluster
        61,  # DescribeProducers
        65,  # DescribeTransactions
        66,  # ListTransactions
    ]
)

_LAST_VERSION: Final = {18: 4}
"""ApiVersions 4 has the format of 3; it allows 0 as a feature's minimum level (KAFKA-17011)."""


def read_messages(jar: Path) -> list[Message]:
    """Return the requests and responses of the selected APIs, by key and name."""
    messages = []
    with ZipFile(jar) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith(FOLDER) and name.endswith(("Request.json", "Response.json")):
                raw = load(archive.read(name).decode())
                if raw["apiKey"] in API_KEYS:
                    messages.append(_amended(parse(raw)))
    return sorted(messages, key=lambda message: (message.api_key, message.name))


def _amended(message: Message) -> Message:
    last = _LAST_VERSION.get(message.api_key, message.versions.last)
    return replace(message, versions=Versions(message.versions.first, last))
