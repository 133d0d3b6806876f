"""DescribeConfigs (key 32): settings with their source, type and synonyms.

Synonyms are listed if asked for, the one in force first (KIP-226). Version 3 adds type and
documentation (KIP-569), 4 is flexible. Resource types: 2 topic, 4 broker, 8 broker logger, 16
client metrics, 32 group.
"""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class DescribeConfigsResource(Message):
    """An element of `DescribeConfigsRequest.resources`."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array(string, nullable="0+")


class DescribeConfigsRequest(Message, api_key=32, versions="1-4", flexible="4+"):
    """A DescribeConfigs request."""

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
