"""Messages to read and change the settings of topics, groups and brokers."""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Message):
    """An element of `DescribeConfigsRequest.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    """DescribeConfigs (key 32): return settings with their source, type and synonyms.

    Synonyms are listed on request, beginning with the one that applies (KIP-226). Version 3 adds
    type and documentation (KIP-569), 4 is flexible. Resource types: 2 topic, 4 broker, 8 broker
    logger, 16 client metrics, 32 group.
    """

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


class DescribeConfigsSynonym(Message):
    """An element of `DescribeConfigsResourceResult.synonyms`."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


class DescribeConfigsResourceResult(Message):
    """An element of `DescribeConfigsResult.configs`."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Message):
    """An element of `DescribeConfigsResponse.results`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


class DescribeConfigsResponse(Message, api_key=32, versions="1-4", flexible="4+"):
    """A DescribeConfigs response."""

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


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
    """IncrementalAlterConfigs (key 44): change some dynamic settings (KIP-339).

    Operations: 0 set, 1 delete; for lists also 2 append, 3 subtract. Version 1 is flexible.
    """

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


class ReplacingConfig(Message):
    """An element of `ReplaceConfigsResource.configs`."""

    name: str = string()
    value: str | None = string(nullable="0+")


class ReplaceConfigsResource(Message):
    """An element of `AlterConfigsRequest.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: list[ReplacingConfig] = array(ReplacingConfig)


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    """AlterConfigs (key 33): replace all dynamic settings of a resource.

    A setting that the request does not name is reset to its default. Therefore Kafka has replaced
    this API by IncrementalAlterConfigs. Version 2 is flexible.
    """

    resources: list[ReplaceConfigsResource] = array(ReplaceConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    """An AlterConfigs response."""

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    """ListConfigResources (key 74): list the resources that can have settings.

    Always flexible. Version 0 lists only client metrics (KIP-714). Version 1 lists the requested
    resource types, or all if the request names none (KIP-1142).
    """

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
