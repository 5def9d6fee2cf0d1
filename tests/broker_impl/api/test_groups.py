from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.groups import sync_group
from broker_impl.api.registry import RequestContext
from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from broker_impl.wire.messages.sync_group_response import SyncGroupResponse


@pytest.mark.parametrize(
    ("version", "kind", "name", "is_served"),
    [
        (5, "consumer", "range", True),
        (5, None, "range", False),
        (5, "consumer", None, False),
        (5, "", "", True),  # the group compares them with its own
        (4, None, None, True),
    ],
)
def test_a_member_names_the_protocol_of_its_group(
    version: int, kind: str | None, name: str | None, is_served: bool
) -> None:
    """KIP-559: SyncGroup from v5 on without a protocol is INCONSISTENT_GROUP_PROTOCOL."""
    groups = SimpleNamespace(ask=lambda *_: SyncGroupResponse(assignment=b"all"))
    services: Any = SimpleNamespace(groups=groups)
    context = RequestContext(services, "L", None, "h", 0, version, lambda: 1000)
    request = SyncGroupRequest("g", 1, "m", protocol_type=kind, protocol_name=name)
    answer: Any = sync_group(context, request)
    error = ErrorCode.NONE if is_served else ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (answer.error_code, answer.assignment) == (error, b"all" if is_served else b"")
