"""DescribeConfigs (32), versions 1-4: settings with sources, synonyms, types and documentation.

Topics, brokers, loggers of brokers, groups and subscriptions to clients' metrics. An unknown name
among the keys asked for is left out, and no keys ask for all, as in Kafka.
"""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import Resolved, UpdateMode
from ottla.broker.configs.configs import Configs, ResourceType
from ottla.broker.configs.requests import of_settings
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import each
from ottla.broker.requests.portions import in_portions, once
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation
from ottla.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def _add_keys(resource: DescribeConfigsResource, other: DescribeConfigsResource) -> None:
    """Add the requested keys; None, like an empty list, means all settings."""
    if resource.configuration_keys and other.configuration_keys:
        resource.configuration_keys += other.configuration_keys
    else:
        resource.configuration_keys = None


@dataclass(slots=True, eq=False, repr=False)
class DescribeConfigs(Handler):
    """Serves DescribeConfigs."""

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
        """Describe each resource independently."""
        return DescribeConfigsResponse(
            results=[self._describe(resource, body) for resource in body.resources]
        )

    def _describe(
        self, resource: DescribeConfigsResource, body: DescribeConfigsRequest
    ) -> DescribeConfigsResult:
        try:
            described = self.configs.describe(resource.resource_type, resource.resource_name)
        except OttlaError as error:
            return _failed(resource, error.code, error.message)
        keys = set(resource.configuration_keys or ())
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
