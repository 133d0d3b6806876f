"""IncrementalAlterConfigs (44), versions 0-1: sets, deletes, appends, subtracts (KIP-339)."""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.broker.audit.details import setting_changes
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.requests import alter_each, of_settings
from ottla.broker.requests.auditing import AdminChange
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each
from ottla.broker.requests.portions import Repeated, in_portions
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_OPERATIONS = {operation.value: operation.name.lower() for operation in AlterOperation}


def _changes(
    body: IncrementalAlterConfigsRequest, response: IncrementalAlterConfigsResponse
) -> Iterator[AdminChange]:
    """Return an audit line for each resource; values that may be secret are hidden."""
    if body.validate_only:
        return
    codes = {(one.resource_type, one.resource_name): one.error_code for one in response.responses}
    for wanted in body.resources:
        settings = [
            (
                each.name,
                _OPERATIONS.get(each.config_operation, str(each.config_operation)),
                each.value,
            )
            for each in wanted.configs
        ]
        code = codes.get((wanted.resource_type, wanted.resource_name), 0)
        yield from setting_changes(wanted, settings, code)


@dataclass(slots=True, eq=False, repr=False)
class IncrementalAlterConfigs(Handler):
    """Serves IncrementalAlterConfigs."""

    api = Api(
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        Versions(0, 1),
        needs=each(
            lambda body: body.resources,
            lambda response: response.responses,
            of_settings(AclOperation.ALTER_CONFIGS),
        ),
        changes=_changes,
        portions=in_portions(
            lambda body: body.resources,
            lambda response: response.responses,
            lambda resource: (resource.resource_type, resource.resource_name),
            most=64,
            repeated=Repeated.ANSWERED_EACH,
            keeps_lists=True,
        ),
        on_error=lambda body, code, message: IncrementalAlterConfigsResponse(
            responses=[_response(resource, code, message) for resource in body.resources]
        ),
    )

    configs: Configs

    async def handle(
        self, _request: RequestContext, body: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """Alter each resource independently; all changes of a resource are made, or none."""

        async def alter(resource: AlterConfigsResource) -> None:
            await self.configs.alter(
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
