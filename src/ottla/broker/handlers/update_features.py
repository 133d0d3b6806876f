"""UpdateFeatures (57), versions 0-2: raises and lowers the levels of features (KIP-584).

A request makes all its updates or none, as in Kafka. Any broker serves it; the store orders the
changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.broker.configs.features import Features
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.metadata.features import FeatureUpdate, UpgradeType
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.wire.messages.cluster import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_UPGRADE_TYPE_SINCE = 1
# From this version on one error code covers all features.
_ONE_RESULT_SINCE = 2


def _changes(
    body: UpdateFeaturesRequest, response: UpdateFeaturesResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each feature."""
    if body.validate_only:
        return
    codes = {one.feature: one.error_code for one in response.results}
    for wanted in body.feature_updates:
        detail = {"feature": bounded(wanted.feature), "level": wanted.max_version_level}
        code = response.error_code or codes.get(wanted.feature, 0)
        yield AdminChange((cluster_need(AclOperation.ALTER),), detail, code)


@dataclass(slots=True, eq=False, repr=False)
class UpdateFeatures(Handler):
    """Serves UpdateFeatures."""

    api = Api(
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
        Versions(0, 2),
        needs=cluster(AclOperation.ALTER),
        changes=_changes,
        on_error=lambda _body, code, message: UpdateFeaturesResponse(
            error_code=code, error_message=message, results=[]
        ),
    )

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
