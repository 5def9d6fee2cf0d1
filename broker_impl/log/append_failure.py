"""How a log reacts to a failed write: the content of the disk is unknown from then on."""

from broker_impl.errors import ApiError, StorageError


def of_append(error: StorageError) -> StorageError | ApiError:
    """The error that a failed append raises; after a StorageError the log accepts no more appends.

    Any part of the failed batch may be at the end of the file (KAFKA-10778).
    """
    return error
