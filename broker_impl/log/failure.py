"""What a write that failed makes of a log: nobody knows what the disk holds since."""

from broker_impl.errors import ApiError, StorageError


def of_append(error: StorageError) -> StorageError | ApiError:
    """What an append that failed is told as. A StorageError: nothing is appended any more, since
    any part of the batch may lie at the end of the file (KAFKA-10778)."""
    return error
