"""ApiVersions (key 18): list the API versions that a broker supports.

The response's header never has tagged fields, so that a client can read it before it knows the
broker's versions. A request in an unsupported version is answered in version 0 with
UNSUPPORTED_VERSION and the supported ranges (KIP-511). Version 3 is flexible and adds features and
the client's name; 4 allows 0 as the lowest version of a feature.
"""

from ottla.wire.notation import Message, array, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message, api_key=18, versions="0-4", flexible="3+"):
    """An ApiVersions request."""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)


class ApiVersion(Message):
    """An element of `ApiVersionsResponse.api_keys`."""

    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


class SupportedFeatureKey(Message):
    """An element of `ApiVersionsResponse.supported_features`."""

    name: str = string("3+")
    min_version: int = int16("3+")
    max_version: int = int16("3+")


class FinalizedFeatureKey(Message):
    """An element of `ApiVersionsResponse.finalized_features`."""

    name: str = string("3+")
    max_version_level: int = int16("3+")
    min_version_level: int = int16("3+")


class ApiVersionsResponse(Message, api_key=18, versions="0-4", flexible="3+"):
    """An ApiVersions response."""

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        SupportedFeatureKey, "3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        FinalizedFeatureKey, "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean("3+", tag=3, ignorable=True)
