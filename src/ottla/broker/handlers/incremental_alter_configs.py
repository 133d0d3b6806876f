"""IncrementalAlterConfigs (44), versions 0-1: sets, deletes, appends, subtracts (KIP-339)."""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.settings.alter import Alteration
from ottla.broker.configs.requests import alter_each
from ottla.broker.requests.legacy import LegacyHandler
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import ApiKey
from ottla.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


async def handle(
    broker: "Broker", _request: RequestContext, body: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Alter each resource; each stands for itself, and is altered whole or not at all."""

    async def alter(resource: AlterConfigsResource) -> None:
        await broker.configs.alter(
            resource.resource_type,
            resource.resource_name,
            [Alteration(c.name, c.config_operation, c.value) for c in resource.configs],
            validate_only=body.validate_only,
        )

    outcomes = await alter_each(body.resources, alter)
    return IncrementalAlterConfigsResponse(responses=[_response(*each) for each in outcomes])


def _response(
    resource: AlterConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def on_error(
    body: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None, _version: int
) -> IncrementalAlterConfigsResponse:
    """The error on every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[_response(resource, code, message) for resource in body.resources]
    )


HANDLER = LegacyHandler(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, handle)
