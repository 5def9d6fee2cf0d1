"""States of the cluster that a fault waits for (option ``once``), according to its metadata."""

from model.capabilities.control_plane import HasRoles
from nemesis.options import Once


async def holds(cluster: HasRoles, once: Once) -> bool:
    """Return whether the partition is in the described state now.

    The ISR is read after the leader: an ISR of the leader that was read, or of a later one. While
    the metadata cannot be read, only "out of sync" could hold, and does not.
    """
    if once.leader is not None and await cluster.leader(once.key) != once.leader:
        return False
    isr = await cluster.isr(once.key)
    are_in = all(broker in isr for broker in once.in_sync)
    return bool(isr) and are_in and not any(broker in isr for broker in once.out_of_sync)
