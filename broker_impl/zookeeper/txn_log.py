"""The transaction log's format: ZooKeeper's own, so that its tools can read the files.

A header, then for each transaction: Adler-32 (as a long), length, bytes, and an end mark. A file is
named after its first zxid. A crash can tear only the last entries of the last file.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

from broker_impl.errors import StorageError, WireError
from broker_impl.zookeeper.txn_records import Proposal

_HEADER = struct.Struct(">4siq")
_ENTRY = struct.Struct(">qi")
_MARK = b"B"

HEADER = _HEADER.pack(b"ZKLG", 2, 0)


def name(zxid: int) -> str:
    """The name of the file whose first transaction has this zxid."""
    return f"log.{zxid:x}"


def entries(proposals: Iterable[Proposal]) -> bytes:
    """Encode these transactions as entries to append."""
    out = bytearray()
    for proposal in proposals:
        body = proposal.entry
        out += _ENTRY.pack(zlib.adler32(body), len(body))
        out += body
        out += _MARK
    return bytes(out)


def read(data: bytes, path: str) -> Iterator[tuple[Proposal, int]]:
    """The transactions of a file, each with the position after it; ends where the file is torn.

    Raises:
        StorageError: the file is not a log, or an intact entry cannot be decoded.
    """
    if len(data) < len(HEADER) or not any(data[: len(HEADER)]):
        return  # never synced: a crash may leave a later page, and zeros before it
    if _HEADER.unpack_from(data)[:2] != (b"ZKLG", 2):
        raise StorageError(f"{path}: the file is not a transaction log")
    for body, at in bodies(data):
        try:
            yield Proposal.decode(body), at
        except WireError as error:
            raise StorageError(
                f"{path}: the transaction before {at} is invalid: {error}"
            ) from error


def bodies(data: bytes | bytearray, at: int = len(HEADER)) -> Iterator[tuple[bytes, int]]:
    """The encoded transactions from a position on, each with the position after its entry.

    Ends where the file is torn.
    """
    while at + _ENTRY.size < len(data):
        checksum, length = _ENTRY.unpack_from(data, at)
        end = at + _ENTRY.size + length
        body = bytes(data[at + _ENTRY.size : end])
        if length <= 0 or data[end : end + 1] != _MARK or zlib.adler32(body) != checksum:
            return
        at = end + len(_MARK)
        yield body, at
