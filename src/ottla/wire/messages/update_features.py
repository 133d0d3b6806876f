"""UpdateFeatures (key 57): change the finalized levels of features (KIP-584). Always flexible.

Version 1 adds `validate_only` and the upgrade type; 2 answers with one error code for all features.
"""

from ottla.wire.notation import Message, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Message):
    """An element of `UpdateFeaturesRequest.feature_updates`."""

    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    # 1: upgrade; 2: downgrade without loss of metadata; 3: downgrade even with loss.
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Message, api_key=57, versions="0-2", flexible="0+"):
    """An UpdateFeatures request."""

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
