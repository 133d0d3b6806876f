"""ListConfigResources (key 74): which resources can have settings.

Always flexible. Version 0 lists client metrics only (KIP-714); 1 lists the given resource types, or
all if none is given (KIP-1142).
"""

from ottla.wire.notation import Message, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    """A ListConfigResources request."""

    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Message):
    """An element of `ListConfigResourcesResponse.config_resources`."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    """A ListConfigResources response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
