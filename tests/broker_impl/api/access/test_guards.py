"""Every API without any right: the response is an error that every served version can carry."""

import asyncio
import typing
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest

from broker_impl.api import access
from broker_impl.api.access.guard import then
from broker_impl.api.operations import bit_field
from broker_impl.api.registry import CloseConnection, RequestContext
from broker_impl.api.table import APIS
from broker_impl.errors import ErrorCode
from broker_impl.security.acls import (
    Authorizer,
    Entry,
    Operation,
    Pattern,
    Permission,
    Resource,
    ResourceType,
)
from broker_impl.wire.messages import request_module, response_module

MINE, THEIRS, NO_TOPIC = UUID(int=1), UUID(int=2), UUID(int=3)
"""The ids of two topics, and one that no topic has."""
OPEN = {17, 18, 36, 38, 39, 40, 41, 60}
"""APIs for which no right is needed."""
FILTERED = {16, 66}
"""APIs whose responses show only what the client may see."""
CODES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
WITHOUT_A_CODE = {(35, 0), (35, 1), (35, 2)}
"""Versions whose responses have no place for the error."""


def sample(kind: Any) -> Any:
    """A value of a type of messages, with one element in every list."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return [sample(arguments[0])]
    if arguments and type(None) in arguments:
        return sample(next(each for each in arguments if each is not type(None)))
    if origin is not None:
        return memoryview(bytes(61))
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(
            **{each.name: sample(hints[each.name]) for each in msgspec.structs.fields(kind)}
        )
    if kind is int:
        return -1
    if kind is UUID:
        return NO_TOPIC
    return {bool: False, str: "x", bytes: b"x"}.get(kind, b"x")


def request_of(key: int) -> Any:
    module = request_module(key)
    name = f"{module.NAME}Request"
    made = sample(getattr(module, name))
    if key == 10:
        made.key_type = 1
    return made


def context(version: int) -> RequestContext:
    config = SimpleNamespace(auto_create_topics_enable=True)
    view = SimpleNamespace(topics={}, topic_ids={"mine": MINE, "theirs": THEIRS})
    controller = SimpleNamespace(cluster=None)
    services: Any = SimpleNamespace(config=config, view=view, controller=controller)
    return RequestContext(services, "L", None, "h", 0, version, lambda: 1000)


def codes(answer: Any) -> list[int]:
    """The error codes anywhere in a message."""
    if isinstance(answer, list):
        return [code for each in answer for code in codes(each)]
    if not isinstance(answer, msgspec.Struct):
        return []
    found: list[int] = []
    for each in msgspec.structs.fields(answer):
        value = getattr(answer, each.name)
        found += [value] if each.name.endswith("error_code") and value else codes(value)
    return found


VERSIONS = [(key, v) for key, row in APIS.items() if key not in OPEN | FILTERED for v in row.served]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_a_client_without_rights_gets_an_error(key: int, version: int) -> None:
    """The handler does not run, and the response has an authorization error in this version."""
    nothing = Authorizer([], allow_without_acl=False)
    called: list[Any] = []

    def handle(_: Any, request: Any) -> Any:
        called.append(request)
        return getattr(response_module(key), f"{response_module(key).NAME}Response")()

    row: Any = SimpleNamespace(key=key, handle=handle)
    answer = access.handle(nothing, row, context(version), request_of(key))
    if key == 3:
        assert [request.topics for request in called] in ([[]], [None])
    else:
        assert called == []
    module = response_module(key)
    decoded = module.decode(memoryview(b"".join(module.encode(answer, version))), version)
    found = codes(decoded)
    assert bool(found) is ((key, version) not in WITHOUT_A_CODE)
    assert set(found) <= CODES


def test_every_api_has_a_guard() -> None:
    """No API is served without a guard, and no guard is left of an API that is not served."""
    assert access.GUARDS.keys() == APIS.keys()


def test_a_producer_without_responses_is_disconnected() -> None:
    """With acks=0 a producer without the right to write learns of it by the end of a connection."""
    request = request_of(0)
    request.acks = 0
    request.transactional_id = None
    nothing = Authorizer([], allow_without_acl=False)
    with pytest.raises(CloseConnection):
        access.handle(nothing, APIS[0], context(9), request)


@pytest.mark.parametrize("key", sorted(FILTERED))
def test_lists_show_what_a_client_may_see(key: int) -> None:
    """Groups and transactions that the client may not describe are left out."""
    module = response_module(key)
    answer = sample(getattr(module, f"{module.NAME}Response"))
    row: Any = SimpleNamespace(key=key, handle=lambda *_: answer)
    shown = access.handle(Authorizer([], allow_without_acl=False), row, context(0), request_of(key))
    assert (shown.groups if key == 16 else shown.transaction_states) == []
    everything = Authorizer([], allow_without_acl=True)
    answer = sample(getattr(module, f"{module.NAME}Response"))
    shown = access.handle(everything, row, context(0), request_of(key))
    assert len(shown.groups if key == 16 else shown.transaction_states) == 1


def rights(*allowed: tuple[ResourceType, str, Operation]) -> Authorizer:
    """An authorizer that allows these operations to everyone, and nothing else."""
    authorizer = Authorizer([], allow_without_acl=False)
    for kind, name, operation in allowed:
        entry = Entry("User:*", "*", operation, Permission.ALLOW)
        resource = Resource(kind, name, Pattern.LITERAL)
        authorizer.acls.replace(resource, [*authorizer.acls.of(resource), entry])
    return authorizer


def handled(
    authorizer: Authorizer, key: int, version: int, request: Any, cluster: Any = None
) -> tuple[Any, Any]:
    """Return the response to a request, and what its handler got; the handler sees an echo.

    cluster: the view of the controller on this broker; None if it is on another one.
    """
    got = []
    answer = sample(getattr(response_module(key), f"{response_module(key).NAME}Response"))

    def handle(_: RequestContext, allowed: Any) -> Any:
        got.append(allowed)
        return answer

    row: Any = SimpleNamespace(key=key, handle=handle)
    on = context(version)
    on.services.controller.cluster = cluster  # type: ignore[misc]
    return access.handle(authorizer, row, on, request), got


def test_a_topic_is_deleted_by_its_id_with_the_right_of_its_name() -> None:
    """An id is judged by its topic; the name is returned only to who may describe the topic."""
    module: Any = request_module(20)
    request = module.DeleteTopicsRequest(
        topics=[
            module.DeleteTopicState(None, MINE),
            module.DeleteTopicState(None, THEIRS),
            module.DeleteTopicState("theirs"),
            module.DeleteTopicState(None, NO_TOPIC),
        ]
    )
    authorizer = rights((ResourceType.TOPIC, "mine", Operation.DELETE))
    answer, got = handled(authorizer, 20, 6, request)
    assert [each.topic_id for each in got[0].topics] == [MINE]
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [(each.name, each.topic_id, each.error_code) for each in answer.responses[1:]] == [
        (None, THEIRS, denied),
        ("theirs", request.topics[2].topic_id, denied),
        (None, NO_TOPIC, ErrorCode.NOT_CONTROLLER),
    ]
    authorizer = rights((ResourceType.TOPIC, "theirs", Operation.DESCRIBE))
    answer, _ = handled(authorizer, 20, 6, request)
    assert [each.name for each in answer.responses] == [None, "theirs", "theirs", None]


@pytest.mark.parametrize("is_allowed", [False, True])
def test_an_id_that_the_controller_knows_first(is_allowed: bool) -> None:
    """The right is checked of a topic that is not yet in the view; other ids are not passed on."""
    module: Any = request_module(20)
    new = UUID(int=4)
    request = module.DeleteTopicsRequest(
        topics=[module.DeleteTopicState(None, new), module.DeleteTopicState(None, NO_TOPIC)]
    )
    authorizer = rights(*[(ResourceType.TOPIC, "new", Operation.DELETE)] * is_allowed)
    cluster = SimpleNamespace(topic_ids={"new": new})
    answer, got = handled(authorizer, 20, 6, request, cluster)
    assert [each.topic_id for allowed in got for each in allowed.topics] == [new] * is_allowed
    assert [(each.topic_id, each.error_code) for each in answer.responses[is_allowed:]] == [
        *[(new, ErrorCode.TOPIC_AUTHORIZATION_FAILED)] * (not is_allowed),
        (NO_TOPIC, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(("replica_id", "session_epoch"), [(-1, -1), (2, 0)])
def test_a_consumer_gets_no_fetch_session(replica_id: int, session_epoch: int) -> None:
    """Each fetch of a consumer is judged for all of its partitions; a follower has its session."""
    module: Any = request_module(1)
    request = sample(module.FetchRequest)
    request.replica_id, request.session_epoch = replica_id, 0
    authorizer = rights(
        (ResourceType.TOPIC, "x", Operation.READ),
        (ResourceType.CLUSTER, "kafka-cluster", Operation.CLUSTER_ACTION),
    )
    _, got = handled(authorizer, 1, 12, request)
    assert [each.session_epoch for each in got] == [session_epoch]


@pytest.mark.parametrize(
    ("key", "version", "kind", "name", "field"),
    [
        (3, 10, ResourceType.CLUSTER, "kafka-cluster", "cluster_authorized_operations"),
        (3, 10, ResourceType.TOPIC, "x", "topics.topic_authorized_operations"),
        (15, 5, ResourceType.GROUP, "x", "groups.authorized_operations"),
        (60, 0, ResourceType.CLUSTER, "kafka-cluster", "cluster_authorized_operations"),
    ],
)
def test_only_permitted_operations_are_listed(
    key: int, version: int, kind: ResourceType, name: str, field: str
) -> None:
    """Of the operations that a resource supports, a client sees those that it may perform."""
    part, _, attribute = field.rpartition(".")

    def shown(listed: int) -> int:
        module = response_module(key)
        answer = sample(getattr(module, f"{module.NAME}Response"))
        setattr(getattr(answer, part)[0] if part else answer, attribute, listed)
        row: Any = SimpleNamespace(key=key, handle=lambda *_: answer)
        authorizer = rights((kind, name, Operation.DESCRIBE), (kind, name, Operation.ALTER))
        found = access.handle(authorizer, row, context(version), request_of(key))
        return int(getattr(getattr(found, part)[0] if part else found, attribute))

    everything = bit_field(*(each for each in Operation if each > Operation.ALL))
    assert shown(everything) == bit_field(Operation.ALTER, Operation.DESCRIBE)
    assert shown(bit_field(Operation.DESCRIBE, Operation.READ)) == bit_field(Operation.DESCRIBE)
    assert shown(-(2**31)) == -(2**31), "the request did not ask for them"


@pytest.mark.parametrize(("key", "version"), [(3, 8), (3, 10), (60, 0)])
def test_operations_on_a_cluster_that_a_client_may_not_describe(key: int, version: int) -> None:
    """KIP-430: without DESCRIBE on the cluster, no operation on it is listed, whatever is allowed.

    ALTER implies DESCRIBE, and CREATE does not.
    """
    everything = bit_field(*(each for each in Operation if each > Operation.ALL))

    def shown(operation: Operation, listed: int = everything) -> int:
        module = response_module(key)
        answer = sample(getattr(module, f"{module.NAME}Response"))
        answer.cluster_authorized_operations = listed
        row: Any = SimpleNamespace(key=key, handle=lambda *_: answer)
        authorizer = rights((ResourceType.CLUSTER, "kafka-cluster", operation))
        found = access.handle(authorizer, row, context(version), request_of(key))
        return int(found.cluster_authorized_operations)

    assert shown(Operation.CREATE) == 0
    assert shown(Operation.CREATE, -(2**31)) == -(2**31), "the request did not ask for them"
    assert shown(Operation.DESCRIBE) == bit_field(Operation.DESCRIBE)
    assert shown(Operation.ALTER) == bit_field(Operation.ALTER, Operation.DESCRIBE)


async def test_an_answer_that_comes_later_is_changed() -> None:
    """A change applies to coroutines and futures, also to a coroutine's future; None stays None."""
    loop = asyncio.get_running_loop()
    parked: asyncio.Future[int] = loop.create_future()

    async def parks() -> Any:
        return parked

    def change(answer: int) -> int:
        return answer + 1

    assert then(1, change) == 2
    assert then(None, change) is None
    later = await then(parks(), change)
    parked.set_result(5)
    assert await later == 6
    failing: asyncio.Future[int] = loop.create_future()
    changed = then(failing, change)
    failing.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        await changed


async def test_a_cancelled_answer_cancels_the_parked_request() -> None:
    """If the connection ends, the parked request is cancelled, and the other way round."""
    loop = asyncio.get_running_loop()
    for is_outer in (True, False):
        parked: asyncio.Future[int] = loop.create_future()
        changed = then(parked, lambda answer: answer)
        (changed if is_outer else parked).cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert parked.cancelled()
        assert changed.cancelled()
