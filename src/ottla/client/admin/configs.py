"""Settings of topics, brokers and groups: read with their origin, changed one by one (KIP-339)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.written_values import plain_value
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, checks_calls, name_list
from ottla.client.common.errors import ClientError, check
from ottla.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ConfigResourceType(IntEnum):
    """The kinds of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


# The same kinds as strings.
ResourceName = Literal["topic", "broker", "broker_logger", "client_metrics", "group"]


class ConfigSource(IntEnum):
    """The origins of a value."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting with its value and the value's origin. Sensitive values are None.

    `synonyms` lists (name, value, source) of each value set for it, the effective one first.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...] = ()
    documentation: str | None = None


# The most topics in one request.
_TOPICS_PER_REQUEST = 500
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def plain(name: str, value: str) -> str:
    """Convert a value to the brokers' notation: `7d` of retention.ms to milliseconds.

    Raises ClientError.
    """
    try:
        return plain_value(name, value)
    except OttlaError as error:
        raise ClientError(error.code, error.message) from None


@checks_calls()
class Configs:
    """`admin.configs`: settings of topics, brokers (by id; "" for all brokers) and groups."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(
        self,
        kind: ConfigResourceType | ResourceName,
        name: str,
        keys: Names | None = None,
        *,
        documentation: bool = False,
    ) -> dict[str, ConfigEntry]:
        """Return the settings in `keys` (None: all settings), by name."""
        resource = _resource_kind(kind)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource,
                    resource_name=name,
                    configuration_keys=None if keys is None else name_list(keys),
                )
            ],
            include_synonyms=True,
            include_documentation=documentation,
        )

        async def ask() -> dict[str, ConfigEntry]:
            broker_id = await self._whom_to_ask(resource, name)
            answer = await self._calls.cluster.ask(broker_id, request, DescribeConfigsResponse)
            found: dict[str, ConfigEntry] = {}
            for result in answer.results:
                what = f"describe the settings of {_named(resource, name)}"
                check(result.error_code, what, result.error_message)
                found.update((entry.name, _entry(entry)) for entry in result.configs)
            return found

        return await self._calls.retried(ask)

    async def describe_topics(
        self, topics: Names, keys: Names
    ) -> dict[str, dict[str, ConfigEntry]]:
        """Return settings by topic and name, of many topics in few requests.

        Topics that were deleted meanwhile, or that this client may not describe, are left out.
        """
        names, wanted = name_list(topics), name_list(keys)
        found: dict[str, dict[str, ConfigEntry]] = {}
        for start in range(0, len(names), _TOPICS_PER_REQUEST):
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=ConfigResourceType.TOPIC,
                        resource_name=name,
                        configuration_keys=wanted,
                    )
                    for name in names[start : start + _TOPICS_PER_REQUEST]
                ]
            )
            answer = await self._calls.cluster.ask_any(request, DescribeConfigsResponse)
            for result in answer.results:
                if not result.error_code:
                    entries = {entry.name: _entry(entry) for entry in result.configs}
                    found[result.resource_name] = entries
        return found

    async def alter(
        self,
        kind: ConfigResourceType | ResourceName,
        name: str,
        changes: Mapping[str, str | None],
        *,
        append: Mapping[str, str] | None = None,
        subtract: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Set values; None resets a setting to its default; other settings are unchanged.

        Durations and sizes may have units, as `7d` and `512Mi`. `append` and `subtract` change
        settings that are lists.
        """
        resource = _resource_kind(kind)
        configs = [
            AlterableConfig(
                name=key,
                config_operation=_DELETE if value is None else _SET,
                value=None if value is None else plain(key, value),
            )
            for key, value in changes.items()
        ]
        for operation, part in ((_APPEND, append), (_SUBTRACT, subtract)):
            configs += [
                AlterableConfig(name=key, config_operation=operation, value=value)
                for key, value in (part or {}).items()
            ]
        request = IncrementalAlterConfigsRequest(
            resources=[
                AlterConfigsResource(resource_type=resource, resource_name=name, configs=configs)
            ],
            validate_only=validate_only,
        )

        async def alter() -> None:
            broker_id = await self._whom_to_ask(resource, name)
            answer = await self._calls.cluster.ask(
                broker_id, request, IncrementalAlterConfigsResponse
            )
            for result in answer.responses:
                what = f"alter the settings of {_named(resource, name)}"
                check(result.error_code, what, result.error_message)

        await self._calls.retried(alter)

    async def _whom_to_ask(self, kind: ConfigResourceType, name: str) -> int:
        """Return the id of the broker to ask; only the broker itself knows its own settings."""
        if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and name:
            if not name.isdecimal():
                raise ClientError(
                    ErrorCode.INVALID_REQUEST, f"a broker is named by its id, not {name!r}"
                )
            await self._calls.cluster.refresh()
            return int(name)
        return await self._calls.cluster.controller()


def _entry(result: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=result.name,
        value=result.value,
        source=_source(result.config_source),
        is_read_only=result.read_only,
        is_sensitive=result.is_sensitive,
        synonyms=tuple(
            (synonym.name, synonym.value, _source(synonym.source)) for synonym in result.synonyms
        ),
        documentation=result.documentation,
    )


def _resource_kind(kind: ConfigResourceType | ResourceName) -> ConfigResourceType:
    return kind if isinstance(kind, ConfigResourceType) else ConfigResourceType[kind.upper()]


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def _named(kind: int, name: str) -> str:
    """Name a resource for messages: `topic 'flights'`, `all brokers`."""
    if kind == ConfigResourceType.BROKER and not name:
        return "all brokers"
    return f"{ConfigResourceType(kind).name.lower()} {name!r}"
