"""File descriptors: as many as the system permits, and some that connections cannot take.

A broker that has no descriptor left cannot write its checkpoints and ends with a storage failure.
Connections therefore get half of them at most.
"""

import dataclasses
import resource
from contextlib import suppress

from broker_impl.config import BrokerConfig


def raise_limit() -> int:
    """Allow this process as many open files as the system permits; the number is returned."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft


def with_room_for_files(config: BrokerConfig, descriptors: int) -> BrokerConfig:
    """The configuration with at most half of the descriptors for connections."""
    if descriptors == resource.RLIM_INFINITY or config.max_connections <= descriptors // 2:
        return config
    return dataclasses.replace(config, max_connections=descriptors // 2)
