"""File descriptors: the limit is raised as far as possible, and connections get half of it at most.

A broker without a free descriptor cannot write its checkpoints and ends with a storage failure.
"""

import dataclasses
import resource
from contextlib import suppress

from broker_impl.config import BrokerConfig


def raise_limit() -> int:
    """Raise this process's limit of open files as far as the system permits, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft


def with_room_for_files(config: BrokerConfig, descriptors: int) -> BrokerConfig:
    """Return the configuration with connections limited to half of the descriptors."""
    if descriptors == resource.RLIM_INFINITY or config.max_connections <= descriptors // 2:
        return config
    return dataclasses.replace(config, max_connections=descriptors // 2)
