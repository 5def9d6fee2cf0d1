"""What the end of a broker says: a line in its log, and an exit status."""

import logging

from broker_impl.errors import BrokerError, ConfigError, StorageError

OK, FAILED, BAD_CONFIG, STORAGE_FAILED = 0, 1, 64, 74
"""As sysexits.h has them: EX_USAGE, EX_IOERR. 1 is Python's own, too, for what nobody caught."""

LOG = logging.getLogger("broker_impl")


def exit_status(error: Exception) -> int:
    """The status of a broker that ended with this error, once it is told: 64 when the
    configuration cannot be obeyed, 74 when the disk failed, else 1."""
    match error:
        case ConfigError():
            LOG.error("%s", error)
            return BAD_CONFIG
        case StorageError():
            LOG.error("storage failed, the log is offline: %s", error)
            return STORAGE_FAILED
        case AssertionError():
            LOG.error("an invariant is broken: %s", error, exc_info=error)
        case BrokerError() | OSError():
            LOG.error("%s", error)
        case _:
            LOG.critical("an error that nobody expects: %s", error, exc_info=error)
    return FAILED
