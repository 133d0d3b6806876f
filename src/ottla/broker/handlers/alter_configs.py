"""AlterConfigs (33), versions 0-2: replaces all settings of a resource by the given ones.

The older API: a setting that the request leaves out is reset to its default (KIP-133). Current
clients send IncrementalAlterConfigs.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError, shortened
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
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    ReplaceConfigsResource,
)


def _changes(body: AlterConfigsRequest, response: AlterConfigsResponse) -> Iterator[AdminChange]:
    """Return an audit line for each resource; values that may be secret are hidden."""
    if body.validate_only:
        return
    codes = {(one.resource_type, one.resource_name): one.error_code for one in response.responses}
    for wanted in body.resources:
        settings = [(each.name, "set", each.value) for each in wanted.configs]
        code = codes.get((wanted.resource_type, wanted.resource_name), 0)
        yield from setting_changes(wanted, settings, code)


@dataclass(slots=True, eq=False, repr=False)
class AlterConfigs(Handler):
    """Serves AlterConfigs."""

    api = Api(
        AlterConfigsRequest,
        AlterConfigsResponse,
        Versions(0, 2),
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
        on_error=lambda body, code, message: AlterConfigsResponse(
            responses=[_response(resource, code, message) for resource in body.resources]
        ),
    )

    configs: Configs

    async def handle(
        self, _request: RequestContext, body: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        """Replace the settings of each resource independently."""

        async def alter(resource: ReplaceConfigsResource) -> None:
            await self.configs.replace(
                resource.resource_type,
                resource.resource_name,
                _configs(resource),
                validate_only=body.validate_only,
            )

        outcomes = await alter_each(body.resources, alter)
        return AlterConfigsResponse(responses=[_response(*each) for each in outcomes])


def _configs(resource: ReplaceConfigsResource) -> dict[str, str]:
    configs: dict[str, str] = {}
    for config in resource.configs:
        if config.value is None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Null value not supported for config {shortened(config.name)}; leave it "
                "out to go back to the default",
            )
        if config.name in configs:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Error due to duplicate config keys: {shortened(config.name)} is given twice",
            )
        configs[config.name] = config.value
    return configs


def _response(
    resource: ReplaceConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
