"""The handlers that read and change the quotas of clients."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.audit.details import portions
from ottla.broker.quotas.quota_settings import QuotaChange, QuotaSettings
from ottla.broker.requests.auditing import AdminChange, cluster_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import cluster
from ottla.broker.requests.request import RequestContext
from ottla.broker.undo.changes import author_of
from ottla.metadata.quota_entity import QuotaEntity, entity_parts, parse_entity
from ottla.quota.filter import check_filter, parse_component
from ottla.security.audit.chain import bounded
from ottla.security.names import AclOperation
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedEntryData,
    EntityData,
    EntryData,
    EntryDataResponse,
    ValueData,
)
from ottla.wire.source import STEP


@dataclass(slots=True, eq=False, repr=False)
class DescribeClientQuotas(Handler):
    """DescribeClientQuotas (48), versions 0-1: lists the quotas that match a filter (KIP-546)."""

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
        """Return the quotas of the entities that match; a default is an entity of its own."""
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


def _changes(
    body: AlterClientQuotasRequest, response: AlterClientQuotasResponse
) -> Iterator[AdminChange]:
    """Return an audit event for each entity.

    A null name means the default entity; a null value means that the quota was removed.
    """
    if body.validate_only:
        return
    codes = {_key(one.entity): one.error_code for one in response.entries}
    for wanted in body.entries:
        names = (
            (bounded(one.entity_type), one.entity_name and bounded(one.entity_name))
            for one in wanted.entity
        )
        # The names of a valid entity fit in one portion; a request with more was refused.
        entity = next(portions(names))
        quotas = (
            (bounded(each.key), None if each.remove else str(each.value)) for each in wanted.ops
        )
        for portion in portions(quotas):
            detail = {"entity": entity, "quotas": portion}
            need = cluster_need(AclOperation.ALTER_CONFIGS)
            yield AdminChange((need,), detail, codes.get(_key(wanted.entity), 0))


def _key(entity: Iterable[EntityData]) -> frozenset[tuple[str, str | None]]:
    return frozenset((part.entity_type, part.entity_name) for part in entity)


@dataclass(slots=True, eq=False, repr=False)
class AlterClientQuotas(Handler):
    """AlterClientQuotas (49), versions 0-1: set and remove quotas (KIP-546).

    Each entity is altered independently; a change applies at once, on all brokers.
    """

    api = Api(
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.ALTER_CONFIGS),
        changes=_changes,
        on_error=lambda body, code, message: AlterClientQuotasResponse(
            entries=[_answer(entry.entity, code, message) for entry in body.entries]
        ),
    )

    quotas: QuotaSettings

    async def handle(
        self, request: RequestContext, body: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        """Alter each entity; an error of one does not affect the others."""
        answers: list[EntryDataResponse] = []
        seen: set[QuotaEntity] = set()
        for index, entry in enumerate(body.entries):
            if index % STEP == STEP - 1:
                # Let the loop serve other requests before the next entity.
                await asyncio.sleep(0)
            try:
                entity = parse_entity(
                    [(part.entity_type, part.entity_name) for part in entry.entity]
                )
                _check_once(entity, seen, entry)
                wishes = [QuotaChange(op.key, None if op.remove else op.value) for op in entry.ops]
                await self.quotas.alter(
                    entity, wishes, author_of(request), validate_only=body.validate_only
                )
                answers.append(_answer(entry.entity, ErrorCode.NONE, None))
            except OttlaError as error:
                answers.append(_answer(entry.entity, error.code, error.message))
        return AlterClientQuotasResponse(entries=answers)


def _check_once(entity: QuotaEntity, seen: set[QuotaEntity], entry: EntryData) -> None:
    if entity in seen:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"The request alters {str(entity)[:200]} twice; name each entity once",
        )
    seen.add(entity)
    twice = [key for key, count in Counter(op.key for op in entry.ops).items() if count > 1]
    if twice:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"The request alters {twice[0][:100]} of {entity} twice; name each quota once",
        )


def _answer(entity: list[EntityData], code: ErrorCode, message: str | None) -> EntryDataResponse:
    return EntryDataResponse(
        error_code=code,
        error_message=message,
        entity=[
            EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entity
        ],
    )
