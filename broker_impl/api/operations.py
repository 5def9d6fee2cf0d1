"""The operations that a client may perform, as bit fields of responses (KIP-430).

A response has them only if its request asks for them; otherwise it has the message's default, which
means "not requested". Without an authorizer, every client may perform every operation that its
resource supports.
"""

from typing import Final

from broker_impl.security.acls import Operation


def bit_field(*operations: Operation) -> int:
    """Return the number in which the bit of each operation is set."""
    return sum(1 << operation for operation in operations)


ON_TOPICS: Final = bit_field(
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
ON_GROUPS: Final = bit_field(Operation.READ, Operation.DELETE, Operation.DESCRIBE)
ON_THE_CLUSTER: Final = bit_field(
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
