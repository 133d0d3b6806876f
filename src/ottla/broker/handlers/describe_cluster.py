"""DescribeCluster (60), versions 0-2: cluster id, controller and brokers (KIP-700)."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.advertised import broker_addresses
from ottla.broker.cluster.registration import known_brokers
from ottla.broker.requests.authorized import CLUSTER_OPERATIONS, NOT_ASKED
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Amend
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Store
from ottla.wire.messages.cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def _needs(check: RequestCheck[DescribeClusterRequest]) -> Amend[DescribeClusterResponse]:
    """Every client may; the authorized operations need DESCRIBE on the cluster."""

    def amend(response: DescribeClusterResponse) -> None:
        if response.cluster_authorized_operations != NOT_ASKED:
            response.cluster_authorized_operations = check.cluster_operations()

    return amend


@dataclass(slots=True, eq=False, repr=False)
class DescribeCluster(Handler):
    """Serves DescribeCluster."""

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
        """Answer from the image; brokers that are registered and dead come from the store."""
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
