"""Read the topics from a consumer's subscription, the only part that a coordinator decodes."""

import struct
from typing import Final

from broker_impl.errors import WireError
from broker_impl.wire.reading import read_array, read_int16, read_string

CONSUMER: Final = "consumer"
"""The protocol type whose metadata is a ConsumerProtocolSubscription."""
_NAME_BYTES_MIN: Final = 2


def topics(metadata: bytes) -> frozenset[str] | None:
    """The topics that a consumer subscribes to; None if the metadata cannot be read.

    Later versions of the subscription only append fields.
    """
    buffer = memoryview(metadata)
    try:
        version, at = read_int16(buffer, 0)
        names, _ = read_array(buffer, at, read_string, _NAME_BYTES_MIN)
    except (IndexError, struct.error, UnicodeDecodeError, WireError):
        return None
    return frozenset(names) if version >= 0 else None
