"""AlterConfigs (key 33): replace all dynamic settings of a resource.

A setting that is not named is reset to its default, so IncrementalAlterConfigs replaces this API.
Version 2 is flexible.
"""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    """An element of `AlterConfigsResource.configs`."""

    name: str = string()
    value: str | None = string(nullable="0+")


class AlterConfigsResource(Message):
    """An element of `AlterConfigsRequest.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    """An AlterConfigs request."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResourceResponse(Message):
    """An element of `AlterConfigsResponse.responses`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    """An AlterConfigs response."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)
