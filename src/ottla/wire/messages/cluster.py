"""Messages to describe the cluster, change its features and remove a broker."""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message, api_key=60, versions="0-2", flexible="0+"):
    """DescribeCluster (key 60): return the cluster id, brokers and controller (KIP-700).

    Always flexible. Version 1 adds the endpoint type: 1 for brokers, 2 for controllers (KIP-919).
    Version 2 can list fenced brokers (KIP-1073).
    """

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


class DescribeClusterBroker(Message):
    """An element of `DescribeClusterResponse.brokers`."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+")
    is_fenced: bool = boolean("2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2", flexible="0+"):
    """A DescribeCluster response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)


class FeatureUpdateKey(Message):
    """An element of `UpdateFeaturesRequest.feature_updates`."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    # 1 means upgrade, 2 a downgrade without loss of metadata, 3 a downgrade even with loss.
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    """UpdateFeatures (key 57): change the finalized levels of features (KIP-584).

    Always flexible. Version 1 adds `validate_only` and the upgrade type. In version 2 the response
    has one error code for all features.
    """

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


class UpdatableFeatureResult(Message):
    """An element of `UpdateFeaturesResponse.results`."""

    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


class UpdateFeaturesResponse(Message, api_key=57, versions="0-2", flexible="0+"):
    """An UpdateFeatures response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible="0+"):
    """UnregisterBroker (key 64): delete a broker's registration (KIP-631). Always flexible."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible="0+"):
    """An UnregisterBroker response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
