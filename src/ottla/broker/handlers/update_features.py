"""UpdateFeatures (57), versions 0-2: levels of features, of which each has but one here.

Who asks for the level that is there is told that it is; nothing else can be set, so that scripts
for upgrades of Kafka either go through or are told why not.
"""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.features import check_level
from ottla.broker.handler import Handler
from ottla.broker.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


def handle(
    _broker: "Broker", _request: RequestContext, body: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """All of it or nothing, as in Kafka. Raises OttlaError."""
    names = [update.feature for update in body.feature_updates]
    if len(set(names)) < len(names):
        raise OttlaError(ErrorCode.INVALID_REQUEST, "a feature is named twice; name it once")
    for update in body.feature_updates:
        check_level(update.feature, update.max_version_level)
    return _response(body, ErrorCode.NONE, None)


def _response(
    body: UpdateFeaturesRequest, code: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=message,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_code=code, error_message=message)
            for update in body.feature_updates
        ],
    )


def on_error(
    body: UpdateFeaturesRequest, code: ErrorCode, message: str | None, _version: int
) -> UpdateFeaturesResponse:
    """The error as a whole, and on each feature."""
    return _response(body, code, message)


HANDLER = Handler(ApiKey.UPDATE_FEATURES, 0, 2, handle)
