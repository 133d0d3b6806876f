"""IncrementalAlterConfigs (key 44): change some dynamic settings (KIP-339).

Operations: 0 set, 1 delete, 2 append, 3 subtract; the last two for lists. Version 1 is flexible.
"""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    """An element of `AlterConfigsResource.configs`."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


class AlterConfigsResource(Message):
    """An element of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+"):
    """An IncrementalAlterConfigs request."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Message):
    """An element of `IncrementalAlterConfigsResponse.responses`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    """An IncrementalAlterConfigs response."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
