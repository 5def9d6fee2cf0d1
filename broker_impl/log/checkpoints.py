"""Read and write the small text files next to and within the logs, in Kafka's formats."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker_impl.log.epochs import EpochStart
from broker_impl.wire import topic_ids
from broker_impl.wire.types import Offset, TopicPartition

_VERSION = 0


class MalformedCheckpoint(ValueError):
    """A checkpoint whose content does not match its format."""


def _lines(text: bytes) -> list[str]:
    """The entries, which follow a line with the format's version and one with their number.

    Every line ends with a line feed: without it, the last number may have lost digits.
    """
    try:
        lines = text.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, IndexError, ValueError):
        raise MalformedCheckpoint(
            "the file does not begin with a version and a number of entries"
        ) from None
    if not text.endswith(b"\n"):
        raise MalformedCheckpoint("the last line is not complete")
    entries = [line for line in lines[2:] if line.strip()]
    if version != _VERSION:
        raise MalformedCheckpoint(f"the file has version {version}, but only {_VERSION} is known")
    if count != len(entries):
        raise MalformedCheckpoint(f"the file announces {count} entries, but has {len(entries)}")
    return entries


def _text(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "\n".join((str(_VERSION), str(len(lines)), *lines, "")).encode()


def parse_offsets(text: bytes) -> dict[TopicPartition, Offset]:
    """Parse an offset per partition, as in `replication-offset-checkpoint`."""
    offsets: dict[TopicPartition, Offset] = {}
    for line in _lines(text):
        try:
            topic, partition, offset = line.split()
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise MalformedCheckpoint(f"invalid entry {line!r}") from None
    return offsets


def format_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Format an offset checkpoint, with its partitions in order."""
    return _text(f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items()))


def parse_epochs(text: bytes) -> list[EpochStart]:
    """Parse a `leader-epoch-checkpoint`: an epoch and its start offset per line."""
    entries: list[EpochStart] = []
    for line in _lines(text):
        try:
            epoch, start = map(int, line.split())
        except ValueError:
            raise MalformedCheckpoint(f"invalid entry {line!r}") from None
        if epoch < 0 or start < 0:
            raise MalformedCheckpoint(f"invalid entry {line!r}")
        entries.append(EpochStart(epoch, start))
    return entries


def format_epochs(entries: Iterable[EpochStart]) -> bytes:
    """Format a leader epoch checkpoint."""
    return _text(f"{epoch} {start}" for epoch, start in entries)


def parse_properties(text: bytes) -> dict[str, str]:
    """Parse `meta.properties`: one `key=value` per line; lines with # are comments."""
    try:
        lines = [line.strip() for line in text.decode().splitlines()]
    except UnicodeDecodeError:
        raise MalformedCheckpoint("the file is not text") from None
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {key.strip(): value.strip() for key, _, value in pairs}


def format_properties(properties: Mapping[str, str]) -> bytes:
    """Format `meta.properties`."""
    return "".join(f"{key}={value}\n" for key, value in properties.items()).encode()


def parse_topic_id(text: bytes) -> UUID:
    """Parse `partition.metadata`: a line with the format's version and one with the topic id."""
    try:
        version, topic_id = text.decode().splitlines()
        if version != f"version: {_VERSION}":
            raise MalformedCheckpoint(f"the file begins with {version!r}")
        key, _, value = topic_id.partition(": ")
        if key != "topic_id":
            raise MalformedCheckpoint(f"invalid entry {topic_id!r}")
        return topic_ids.from_text(value)
    except MalformedCheckpoint:
        raise
    except ValueError:  # not text, another number of lines, or not an id
        raise MalformedCheckpoint("the file does not hold a topic id") from None


def format_topic_id(topic_id: UUID) -> bytes:
    """Format `partition.metadata`; as in Kafka, the last line has no end."""
    return f"version: {_VERSION}\ntopic_id: {topic_ids.to_text(topic_id)}".encode()
