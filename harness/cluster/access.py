"""Requests of an operator of a protected cluster: passwords, rights, and key stores of brokers."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from broker_impl.security import scram
from broker_impl.security.acls import CLUSTER_NAME, Operation, Pattern, Permission, ResourceType
from broker_impl.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from broker_impl.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from broker_impl.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from broker_impl.wire.messages.describe_acls_request import DescribeAclsRequest
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from harness.cluster.address import Address
from harness.cluster.observe.kafka_request import ask
from harness.cluster.security import USER
from model.capabilities.security import Right

TIMEOUT_S = 2.0
PRINCIPAL: Final = f"User:{USER}"
_ALTER_USERS = (51, 0)
_ALTER_CONFIGS = (44, 1)
_BROKER, _SET = 4, 0
"""The type of resource, and the operation, of IncrementalAlterConfigs."""
_CREATE_ACLS, _DELETE_ACLS, _DESCRIBE_ACLS = (30, 2), (31, 2), (29, 2)
_ITERATIONS = 4096
_MECHANISMS: Mapping[str, int] = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_SALT = b"salt of a run's user"


class Grant(NamedTuple):
    """The right to one operation on all resources of a type."""

    resource: ResourceType
    operation: Operation

    @property
    def name(self) -> str:
        """The name of the resource in the ACL."""
        return CLUSTER_NAME if self.resource == ResourceType.CLUSTER else "*"


WRITES: Final[Mapping[Right, Grant]] = {
    "topics": Grant(ResourceType.TOPIC, Operation.WRITE),
    "transactions": Grant(ResourceType.TRANSACTIONAL_ID, Operation.WRITE),
}
"""The rights that faults take away."""
_OF_TOPICS = (
    *(Operation.READ, Operation.CREATE, Operation.DELETE, Operation.ALTER, Operation.DESCRIBE),
    *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
)
_OF_GROUPS = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
_OF_CLUSTER = (Operation.IDEMPOTENT_WRITE, Operation.DESCRIBE)
GRANTS: Final = (
    *WRITES.values(),
    *(Grant(ResourceType.TOPIC, operation) for operation in _OF_TOPICS),
    *(Grant(ResourceType.GROUP, operation) for operation in _OF_GROUPS),
    *(Grant(ResourceType.CLUSTER, operation) for operation in _OF_CLUSTER),
    Grant(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE),
)
"""The rights that workloads need."""


async def write_password(broker: Address, mechanism: str, password: str) -> bool:
    """Set the user's password; return whether the broker confirmed it."""
    salted = scram.salted(mechanism, password, _SALT, _ITERATIONS)
    change = ScramCredentialUpsertion(USER, _MECHANISMS[mechanism], _ITERATIONS, _SALT, salted)
    request = AlterUserScramCredentialsRequest(upsertions=[change])
    answer = await ask(broker, _ALTER_USERS, request, TIMEOUT_S)
    return answer is not None and not any(row.error_code for row in answer.results)


async def grant(broker: Address, grants: Iterable[Grant]) -> bool:
    """Give the user rights; return whether the broker confirmed all of them."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=each.resource,
                resource_name=each.name,
                resource_pattern_type=Pattern.LITERAL,
                principal=PRINCIPAL,
                host="*",
                operation=each.operation,
                permission_type=Permission.ALLOW,
            )
            for each in grants
        ]
    )
    answer = await ask(broker, _CREATE_ACLS, request, TIMEOUT_S)
    return answer is not None and not any(row.error_code for row in answer.results)


async def revoke(broker: Address, right: Grant) -> bool:
    """Take a right of the user away; return whether the broker confirmed it."""
    wanted = DeleteAclsFilter(
        resource_type_filter=right.resource,
        resource_name_filter=right.name,
        pattern_type_filter=Pattern.LITERAL,
        principal_filter=PRINCIPAL,
        host_filter=None,
        operation=right.operation,
        permission_type=Permission.ALLOW,
    )
    answer = await ask(broker, _DELETE_ACLS, DeleteAclsRequest(filters=[wanted]), TIMEOUT_S)
    return answer is not None and not any(row.error_code for row in answer.filter_results)


async def granted(broker: Address, right: Grant) -> bool | None:
    """Return whether the broker says that the user has a right; ``None`` without an answer."""
    request = DescribeAclsRequest(
        resource_type_filter=right.resource,
        resource_name_filter=right.name,
        pattern_type_filter=Pattern.LITERAL,
        principal_filter=PRINCIPAL,
        host_filter=None,
        operation=right.operation,
        permission_type=Permission.ALLOW,
    )
    answer: Any = await ask(broker, _DESCRIBE_ACLS, request, TIMEOUT_S)
    if answer is None or answer.error_code:
        return None
    return bool(answer.resources)


async def use_key_store(broker: Address, number: int, listeners: Iterable[str], path: str) -> bool:
    """Let a broker read the key store of these listeners (KIP-226); return whether it confirmed."""
    settings = [
        AlterableConfig(f"listener.name.{name.lower()}.ssl.keystore.location", _SET, path)
        for name in listeners
    ]
    resource = AlterConfigsResource(_BROKER, str(number), settings)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    answer = await ask(broker, _ALTER_CONFIGS, request, TIMEOUT_S)
    return answer is not None and not any(row.error_code for row in answer.responses)
