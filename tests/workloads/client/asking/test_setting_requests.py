"""The broker's own codec reads the request, and writes the answer."""

from broker_impl.wire.messages import (
    incremental_alter_configs_request,
    incremental_alter_configs_response,
)
from workloads.client.asking.setting_requests import SettingRequest, _Settings


def test_one_setting_of_a_topic_is_set() -> None:
    """It is not only validated."""
    data = SettingRequest("t", "segment.ms", "5").build(_Settings).encode()
    found = incremental_alter_configs_request.decode(memoryview(data), 0)
    [resource] = found.resources
    [row] = resource.configs
    assert (resource.resource_type, resource.resource_name, found.validate_only) == (2, "t", False)
    assert (row.name, row.config_operation, row.value) == ("segment.ms", 0, "5")


def test_the_answer_has_an_error_for_each_topic() -> None:
    """And a message, which may be missing."""
    row = incremental_alter_configs_response.AlterConfigsResourceResponse(40, None, 2, "t")
    answer = incremental_alter_configs_response.IncrementalAlterConfigsResponse(responses=[row])
    data = b"".join(map(bytes, incremental_alter_configs_response.encode(answer, 0)))
    assert _Settings.RESPONSE_TYPE.decode(data).resources == [(40, None, 2, "t")]
