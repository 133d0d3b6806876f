"""The handlers that describe the cluster, change its features, and remove a broker."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.addresses import broker_addresses
from ottla.broker.cluster.registration import known_brokers, remove
from ottla.broker.configs.features import Features
from ottla.broker.requests.access import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend, cluster
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Store
from ottla.metadata.features import FeatureUpdate, UpgradeType
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.wire.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def _needs(check: RequestCheck[DescribeClusterRequest]) -> Amend[DescribeClusterResponse]:
    """Allow every client; authorized operations are shown only with DESCRIBE on the cluster."""

    def amend(response: DescribeClusterResponse) -> None:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = check.cluster_operations()

    return amend


@dataclass(slots=True, eq=False, repr=False)
class DescribeCluster(Handler):
    """DescribeCluster (60), versions 0-2: cluster id, controller and brokers (KIP-700)."""

    api = Api(
        DescribeClusterRequest,
        DescribeClusterResponse,
        Versions(0, 2),
        needs=_needs,
        on_error=lambda body, code, message: DescribeClusterResponse(
            error_code=code, error_message=message, endpoint_type=body.endpoint_type
        ),
    )

    view: ClusterView
    store: Store

    async def handle(
        self, request: RequestContext, body: DescribeClusterRequest
    ) -> DescribeClusterResponse:
        """Answer from the cluster image; read dead registered brokers from the store."""
        if body.endpoint_type == _CONTROLLERS:
            raise OttlaError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
                "type CONTROLLER; there are no separate controllers here",
            )
        if body.endpoint_type != _BROKERS:
            raise OttlaError(
                ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                f"Unsupported endpoint type {body.endpoint_type}; 1 stands for brokers",
            )
        known = await known_brokers(self.store) if body.include_fenced_brokers else {}
        image = self.view.image
        fenced = [broker for each, broker in known.items() if each not in image.brokers]
        asked = body.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id=image.cluster_id,
            controller_id=image.controller_id,
            brokers=[
                DescribeClusterBroker(
                    broker_id=b.id,
                    host=b.host,
                    port=b.port,
                    rack=b.rack,
                    is_fenced=b.id not in image.brokers,
                )
                for b in broker_addresses(image, request, fenced)
            ],
            cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
        )


_UPGRADE_TYPE_SINCE = 1
# From this version on the response has a single error code for all features.
_ONE_RESULT_SINCE = 2


def _features_changes(
    body: UpdateFeaturesRequest, response: UpdateFeaturesResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each feature."""
    if body.validate_only:
        return
    codes = {one.feature: one.error_code for one in response.results}
    for wanted in body.feature_updates:
        detail = {"feature": bounded(wanted.feature), "level": wanted.max_version_level}
        code = response.error_code or codes.get(wanted.feature, 0)
        yield AdminChange((cluster_need(AclOperation.ALTER),), detail, code)


@dataclass(slots=True, eq=False, repr=False)
class UpdateFeatures(Handler):
    """UpdateFeatures (57), versions 0-2: raises and lowers the levels of features (KIP-584).

    As in Kafka, either all updates of a request are made or none. Any broker serves the request;
    the store serializes the changes.
    """

    api = Api(
        UpdateFeaturesRequest,
        UpdateFeaturesResponse,
        Versions(0, 2),
        needs=cluster(AclOperation.ALTER),
        changes=_features_changes,
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


_log = logging.getLogger(__name__)


def _unregister_changes(
    body: UnregisterBrokerRequest, response: UnregisterBrokerResponse
) -> Iterator[AdminChange]:
    """Return the audit event."""
    detail = {"unregistered": body.broker_id}
    yield AdminChange((cluster_need(AclOperation.ALTER),), detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class UnregisterBroker(Handler):
    """UnregisterBroker (64), version 0: forgets a broker that is gone for good.

    After that, new internal topics get no replicas on the broker. Its existing replicas stay
    assigned until they are moved. If the broker registers again, it is known again. The request is
    refused for a live broker.
    """

    api = Api(
        UnregisterBrokerRequest,
        UnregisterBrokerResponse,
        Versions(0, 0),
        needs=cluster(AclOperation.ALTER),
        changes=_unregister_changes,
    )

    store: Store

    async def handle(
        self, _request: RequestContext, body: UnregisterBrokerRequest
    ) -> UnregisterBrokerResponse:
        """Remove the broker from the store. Raises OttlaError."""
        await remove(self.store, BrokerId(body.broker_id))
        _log.info("broker %d was removed from the cluster", body.broker_id)
        return UnregisterBrokerResponse(error_message=None)
