"""The codecs of record batches: no compression, gzip, snappy, LZ4 and zstd."""

import struct
from collections.abc import Callable
from typing import Final

import cramjam

from broker_impl.errors import WireError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
"""The codecs' numbers, as in the attributes of a batch."""

_INT32: Final = struct.Struct(">i")
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16  # the magic, a version and a compatible version
_LZ4_HEADER: Final = bytes.fromhex("04224d18604082")
"""Independent blocks of up to 64 KiB without checksums: the header that Kafka's producers write."""
_LZ4_BLOCK_BYTES: Final = 64 << 10
_LZ4_SIZE: Final = struct.Struct("<I")
_LZ4_PLAIN: Final = 1 << 31
"""Added to a block's size if the block is not compressed."""


def compress(plain: bytes, codec: int) -> bytes:
    """Return the records of a batch compressed by a codec; WireError if it is unknown."""
    match codec:
        case 0:
            return plain
        case 1:
            return bytes(cramjam.gzip.compress(plain))
        case 2:
            return bytes(cramjam.snappy.compress_raw(plain))
        case 3:
            return _lz4_frame(plain)
        case 4:
            return bytes(cramjam.zstd.compress(plain))
        case _:
            raise WireError(f"compression codec {codec} is unknown")


def _lz4_frame(plain: bytes) -> bytes:
    """Compress into a frame of independent blocks, without which Java's client cannot read it."""
    frame = bytearray(_LZ4_HEADER)
    for at in range(0, len(plain), _LZ4_BLOCK_BYTES):
        block = plain[at : at + _LZ4_BLOCK_BYTES]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            frame += _LZ4_SIZE.pack(len(packed)) + packed
        else:
            frame += _LZ4_SIZE.pack(len(block) | _LZ4_PLAIN) + block
    return bytes(frame + _LZ4_SIZE.pack(0))


def decompress(payload: bytes, codec: int, bytes_max: int) -> bytes:
    """Return at most `bytes_max` decompressed bytes: 32 KB of zstd can hold a gigabyte."""
    try:
        match codec:
            case 0:
                return payload
            case 1:
                return _grow(cramjam.gzip.decompress_into, payload, bytes_max)
            case 2:
                return _unsnap(payload, bytes_max)
            case 3:
                return _grow(cramjam.lz4.decompress_into, payload, bytes_max)
            case 4:
                return _grow(cramjam.zstd.decompress_into, payload, bytes_max)
            case _:
                raise WireError(f"compression codec {codec} is unknown")
    except cramjam.DecompressionError as error:
        raise WireError(f"the batch cannot be decompressed: {error}") from None


def _grow(decompress_into: Callable[[bytes, bytearray], int], data: bytes, bytes_max: int) -> bytes:
    """Decompress into larger and larger buffers: the codecs state no size that can be trusted."""
    room = min(bytes_max, max(1 << 16, 8 * len(data)))
    while True:
        target = bytearray(room)
        try:
            return bytes(memoryview(target)[: decompress_into(data, target)])
        except cramjam.DecompressionError:
            if room == bytes_max:
                raise
            room = min(bytes_max, 8 * room)


def _unsnap(payload: bytes, bytes_max: int) -> bytes:
    """Decompress raw snappy, or the blocks that Java's stream writes (xerial's framing)."""
    if not payload.startswith(_XERIAL_MAGIC):
        return _unsnap_block(payload, bytes_max)
    plain, at = bytearray(), _XERIAL_HEADER_BYTES
    while at < len(payload):
        if at + _INT32.size > len(payload):
            raise WireError("a snappy block is truncated")
        (size,) = _INT32.unpack_from(payload, at)
        at += _INT32.size
        if size < 0 or at + size > len(payload):
            raise WireError(
                f"a snappy block has {size} bytes, but only {len(payload) - at} are left"
            )
        plain += _unsnap_block(payload[at : at + size], bytes_max - len(plain))
        at += size
    return bytes(plain)


def _unsnap_block(block: bytes, bytes_max: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > bytes_max:
        raise WireError(
            f"the records have {size} bytes when decompressed, only {bytes_max} are allowed"
        )
    return bytes(cramjam.snappy.decompress_raw(block))
