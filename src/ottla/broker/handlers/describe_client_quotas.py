"""DescribeClientQuotas (48), versions 0-1: lists the quotas that match a filter (KIP-546)."""

from dataclasses import dataclass

from ottla.broker.quotas.quota_settings import QuotaSettings
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.metadata.quota_entity import entity_parts
from ottla.quota.filter import check_filter, parse_component
from ottla.security.names import AclOperation
from ottla.wire.messages.client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedEntryData,
    EntityData,
    ValueData,
)


@dataclass(slots=True, eq=False, repr=False)
class DescribeClientQuotas(Handler):
    """Serves DescribeClientQuotas."""

    api = Api(
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.DESCRIBE_CONFIGS),
        on_error=lambda _body, code, message: DescribeClientQuotasResponse(
            error_code=code, error_message=message, entries=None
        ),
    )

    quotas: QuotaSettings

    def handle(
        self, _request: RequestContext, body: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        """List the quotas set for the entities that match; defaults are listed as entities."""
        components = [
            parse_component(component.entity_type, component.match_type, component.match)
            for component in body.components
        ]
        check_filter(components)
        return DescribeClientQuotasResponse(
            entries=[
                DescribedEntryData(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity_parts(entity)
                    ],
                    values=[ValueData(key=key.value, value=limit) for key, limit in limits.items()],
                )
                for entity, limits in self.quotas.describe(components, strict=body.strict)
            ]
        )
