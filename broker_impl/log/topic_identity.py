"""The id of the topic to which a log belongs: the file `partition.metadata` (KIP-516).

The file is written before the first record is, so that each log with records has one. Logs of an
earlier release have none.
"""

import logging
from uuid import UUID

from broker_impl.errors import StorageError
from broker_impl.log import checkpoints
from broker_impl.log.disk import Disk
from broker_impl.wire.types import NO_UUID

logger = logging.getLogger(__name__)

PARTITION_METADATA = "partition.metadata"


def read(disk: Disk, directory: str, *, is_empty: bool) -> UUID:
    """Return the topic id in a log's directory; NO_UUID if the file is missing.

    A damaged file counts as missing only if the log has no records. A log with records would
    otherwise belong to any topic of its name, also if its own topic has been deleted; StorageError
    is raised.
    """
    path = f"{directory}/{PARTITION_METADATA}"
    if not disk.exists(path):
        return NO_UUID
    try:
        return checkpoints.parse_topic_id(disk.read(path))
    except checkpoints.MalformedCheckpoint as damage:
        if not is_empty:
            raise StorageError(f"{path}: {damage}") from None
        logger.warning("%s: %s; the log is empty and belongs to no topic yet", path, damage)
        return NO_UUID


def write(disk: Disk, directory: str, topic_id: UUID) -> None:
    """Write the topic id of a log, durable on return and never partially."""
    disk.write(f"{directory}/{PARTITION_METADATA}", checkpoints.format_topic_id(topic_id))
