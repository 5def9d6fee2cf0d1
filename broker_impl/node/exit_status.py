"""The last log line and the exit status of a broker that ends with an error."""

import logging

from broker_impl.errors import BAD_CONFIG as BAD_CONFIG
from broker_impl.errors import FAILED as FAILED
from broker_impl.errors import OK as OK
from broker_impl.errors import STORAGE_FAILED as STORAGE_FAILED
from broker_impl.errors import BrokerError, ConfigError, StorageError

LOG = logging.getLogger("broker_impl")


def exit_status(error: Exception) -> int:
    """Log this error and return the exit status of the broker that ended with it.

    64: the configuration is not valid; 74: the disk failed; 1: any other error. Exceptions that end
    the broker are logged as critical: those that it survives are errors.
    """
    match error:
        case ConfigError():
            LOG.error("%s", error)
            return BAD_CONFIG
        case StorageError():
            LOG.error("the broker stops because its disk failed: %s", error)
            return STORAGE_FAILED
        case AssertionError():
            LOG.critical(
                "the broker stops because an invariant does not hold: %s", error, exc_info=error
            )
        case BrokerError() | OSError():
            LOG.error("%s", error)
        case _:
            LOG.critical(
                "the broker stops because of an unexpected error: %s", error, exc_info=error
            )
    return FAILED
