"""The handlers that read and change the settings of topics, groups and brokers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings import Resolved, UpdateMode
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.broker.audit.details import setting_changes
from ottla.broker.configs.configs import Configs, ResourceType
from ottla.broker.configs.requests import alter_each, of_settings
from ottla.broker.requests.auditing import AdminChange
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import Guard, cluster, each
from ottla.broker.requests.portions import Portions, Repeated, in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.broker.undo.changes import author_of
from ottla.security.names import AclOperation
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ReplaceConfigsResource,
    ReplacingConfig,
)


def _add_keys(resource: DescribeConfigsResource, other: DescribeConfigsResource) -> None:
    """Add the requested keys; None, like an empty list, requests all settings."""
    if resource.configuration_keys and other.configuration_keys:
        resource.configuration_keys += other.configuration_keys
    else:
        resource.configuration_keys = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigs(Handler):
    """DescribeConfigs (32), versions 1-4: settings with sources, synonyms, types and documentation.

    The resources are topics, brokers, loggers of brokers, groups and subscriptions to client
    metrics. As in Kafka, a request without keys returns all settings, and unknown keys are left
    out.
    """

    api = Api(
        DescribeConfigsRequest,
        DescribeConfigsResponse,
        Versions(1, 4),
        needs=each(
            lambda body: body.resources,
            lambda response: response.results,
            of_settings(AclOperation.DESCRIBE_CONFIGS),
        ),
        portions=in_portions(
            lambda body: body.resources, lambda response: response.results, most=8
        ),
        once=once(
            lambda body: body.resources,
            lambda resource: (resource.resource_type, resource.resource_name),
            _add_keys,
        ),
        # The answer has many times as many objects, which slow down garbage collection.
        fewer_elements_max=100_000,
        on_error=lambda body, code, message: DescribeConfigsResponse(
            results=[_failed(resource, code, message) for resource in body.resources]
        ),
    )

    configs: Configs

    def handle(
        self, _request: RequestContext, body: DescribeConfigsRequest
    ) -> DescribeConfigsResponse:
        """Describe each resource; an error in one does not affect the others."""
        return DescribeConfigsResponse(
            results=[self._describe(resource, body) for resource in body.resources]
        )

    def _describe(
        self, resource: DescribeConfigsResource, body: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        keys = set(resource.configuration_keys or ())
        try:
            described = self.configs.describe(resource.resource_type, resource.resource_name, keys)
        except OttlaError as error:
            return _failed(resource, error.code, error.message)
        return DescribeConfigsResult(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                _entry(resolved, resource.resource_type, body)
                for resolved in described
                if not keys or resolved.setting.name in keys
            ],
        )


def _entry(
    resolved: Resolved, kind: int, body: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    setting = resolved.setting
    read_only = kind == ResourceType.BROKER and setting.update is UpdateMode.READ_ONLY
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.text, source=synonym.source)
        for synonym in (resolved.synonyms if body.include_synonyms else ())
    ]
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if setting.sensitive else setting.text_of(resolved.value),
        read_only=read_only,
        config_source=resolved.source,
        is_sensitive=setting.sensitive,
        synonyms=synonyms,
        config_type=setting.type,
        documentation=setting.doc if body.include_documentation else None,
    )


def _failed(
    resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


_OPERATIONS = {operation.value: operation.name.lower() for operation in AlterOperation}
_ALTER_NEEDS: Guard[Any, Any] = each(
    lambda body: body.resources,
    lambda response: response.responses,
    of_settings(AclOperation.ALTER_CONFIGS),
)
_ALTER_PORTIONS: tuple[Portions[Any, Any], ...] = in_portions(
    lambda body: body.resources,
    lambda response: response.responses,
    lambda resource: (resource.resource_type, resource.resource_name),
    most=64,
    repeated=Repeated.ANSWERED_EACH,
    keeps_lists=True,
)


def _alter_changes(
    body: IncrementalAlterConfigsRequest | AlterConfigsRequest,
    response: IncrementalAlterConfigsResponse | AlterConfigsResponse,
) -> Iterator[AdminChange]:
    """Return an audit event for each resource; values that may be secret are hidden."""
    if body.validate_only:
        return
    codes = {(one.resource_type, one.resource_name): one.error_code for one in response.responses}
    for wanted in body.resources:
        settings = [(each.name, _operation(each), each.value) for each in wanted.configs]
        code = codes.get((wanted.resource_type, wanted.resource_name), 0)
        yield from setting_changes(wanted, settings, code)


def _operation(config: AlterableConfig | ReplacingConfig) -> str:
    if isinstance(config, ReplacingConfig):
        return "set"
    return _OPERATIONS.get(config.config_operation, str(config.config_operation))


def _altered(
    resource: AlterConfigsResource | ReplaceConfigsResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


@dataclass(slots=True, eq=False, repr=False)
class IncrementalAlterConfigs(Handler):
    """IncrementalAlterConfigs (44), versions 0-1: sets, deletes, appends, subtracts (KIP-339)."""

    api = Api(
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        Versions(0, 1),
        needs=_ALTER_NEEDS,
        changes=_alter_changes,
        portions=_ALTER_PORTIONS,
        on_error=lambda body, code, message: IncrementalAlterConfigsResponse(
            responses=[_altered(resource, code, message) for resource in body.resources]
        ),
    )

    configs: Configs

    async def handle(
        self, request: RequestContext, body: IncrementalAlterConfigsRequest
    ) -> IncrementalAlterConfigsResponse:
        """Alter each resource independently. Either all changes of a resource are made or none."""

        async def alter(resource: AlterConfigsResource) -> None:
            await self.configs.alter(
                resource.resource_type,
                resource.resource_name,
                [Alteration(c.name, c.config_operation, c.value) for c in resource.configs],
                author_of(request),
                validate_only=body.validate_only,
            )

        outcomes = await alter_each(body.resources, alter)
        return IncrementalAlterConfigsResponse(responses=[_altered(*each) for each in outcomes])


@dataclass(slots=True, eq=False, repr=False)
class AlterConfigs(Handler):
    """AlterConfigs (33), versions 0-2: replaces all settings of a resource by the given ones.

    This is the older API: a setting that the request leaves out is reset to its default (KIP-133).
    Current clients send IncrementalAlterConfigs instead.
    """

    api = Api(
        AlterConfigsRequest,
        AlterConfigsResponse,
        Versions(0, 2),
        needs=_ALTER_NEEDS,
        changes=_alter_changes,
        portions=_ALTER_PORTIONS,
        on_error=lambda body, code, message: AlterConfigsResponse(
            responses=[_altered(resource, code, message) for resource in body.resources]
        ),
    )

    configs: Configs

    async def handle(
        self, request: RequestContext, body: AlterConfigsRequest
    ) -> AlterConfigsResponse:
        """Replace the settings of each resource; an error in one does not affect the others."""

        async def alter(resource: ReplaceConfigsResource) -> None:
            await self.configs.replace(
                resource.resource_type,
                resource.resource_name,
                _configs(resource),
                author_of(request),
                validate_only=body.validate_only,
            )

        outcomes = await alter_each(body.resources, alter)
        return AlterConfigsResponse(responses=[_altered(*each) for each in outcomes])


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


_LISTED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@dataclass(slots=True, eq=False, repr=False)
class ListConfigResources(Handler):
    """ListConfigResources (74), versions 0-1: lists the resources that have settings (KIP-1142).

    Version 0 lists only subscriptions to client metrics.
    """

    api = Api(
        ListConfigResourcesRequest,
        ListConfigResourcesResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.DESCRIBE_CONFIGS),
    )

    configs: Configs

    def handle(
        self, request: RequestContext, body: ListConfigResourcesRequest
    ) -> ListConfigResourcesResponse:
        """List the resources of the requested types, or of all."""
        strange = [kind for kind in body.resource_types if kind not in _LISTED]
        if strange:
            raise OttlaError(
                ErrorCode.UNSUPPORTED_VERSION, f"resource type {strange[0]} cannot be listed"
            )
        kinds = body.resource_types or list(_LISTED)
        if request.version == 0:
            kinds = [ResourceType.CLIENT_METRICS]
        return ListConfigResourcesResponse(
            config_resources=[
                ConfigResource(resource_name=name, resource_type=kind)
                for kind, name in self.configs.resources(kinds)
            ]
        )
