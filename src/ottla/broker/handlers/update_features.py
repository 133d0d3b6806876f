"""UpdateFeatures (57), versions 0-2: raises and lowers the levels of features (KIP-584).

All updates of a request or none, as in Kafka. Any broker takes it; the store orders the changes.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.broker.configs.features import Features
from ottla.broker.requests.handler import Handler, Versions
from ottla.broker.requests.request import RequestContext
from ottla.metadata.features import FeatureUpdate, UpgradeType
from ottla.wire.api import ApiKey
from ottla.wire.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UPGRADE_TYPE_SINCE = 1
# From this version on one error code stands for all features.
_ONE_RESULT_SINCE = 2


@dataclass(slots=True, eq=False, repr=False)
class UpdateFeatures(Handler):
    """Serves UpdateFeatures."""

    api = ApiKey.UPDATE_FEATURES
    versions = Versions(0, 2)

    features: Features

    async def handle(
        self, request: RequestContext, body: UpdateFeaturesRequest
    ) -> UpdateFeaturesResponse:
        """Update the features; version 0 ignores `allow_downgrade`, as Kafka does."""
        typed = request.version >= _UPGRADE_TYPE_SINCE
        updates = [
            FeatureUpdate(
                update.feature,
                update.max_version_level,
                update.upgrade_type if typed else UpgradeType.UPGRADE,
            )
            for update in body.feature_updates
        ]
        await self.features.update(updates, validate_only=body.validate_only)
        if request.version >= _ONE_RESULT_SINCE:
            return UpdateFeaturesResponse(results=[])
        return UpdateFeaturesResponse(
            results=[UpdatableFeatureResult(feature=update.name) for update in updates]
        )

    @staticmethod
    def on_error(
        _body: UpdateFeaturesRequest, code: ErrorCode, message: str | None, _version: int
    ) -> UpdateFeaturesResponse:
        """The error as a whole: nothing was changed."""
        return UpdateFeaturesResponse(error_code=code, error_message=message, results=[])
