"""IncrementalAlterConfigs (KIP-339), which aiokafka lacks."""

from typing import Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int8, Int16, Int32, Schema, String

_TOPIC: Final = 2
"""The type of resource."""
_SET: Final = 0
_RESOURCE = (("resource_type", Int8), ("resource_name", String("utf-8")))


class _SettingsResponse(Response):  # type: ignore[misc]
    API_KEY = 44
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "resources",
            Array(("error_code", Int16), ("error_message", String("utf-8")), *_RESOURCE),
        ),
    )


class _Settings(RequestStruct):  # type: ignore[misc]
    API_KEY = 44
    API_VERSION = 0
    RESPONSE_TYPE = _SettingsResponse
    SCHEMA = Schema(
        (
            "resources",
            Array(
                *_RESOURCE,
                (
                    "configs",
                    Array(
                        ("name", String("utf-8")),
                        ("operation", Int8),
                        ("value", String("utf-8")),
                    ),
                ),
            ),
        ),
        ("validate_only", Boolean),
    )


class SettingRequest(Request[_Settings]):  # type: ignore[misc]
    """Sets one setting of a topic, and changes no other."""

    API_KEY = 44

    def __init__(self, topic: str, name: str, value: str) -> None:
        self._resources = [(_TOPIC, topic, [(name, _SET, value)])]

    def build(self, request_struct_class: type[_Settings]) -> _Settings:
        return request_struct_class(self._resources, False)
