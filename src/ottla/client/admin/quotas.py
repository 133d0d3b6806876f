"""Quotas of users, client ids and addresses (KIP-546)."""

from collections.abc import Mapping

from ottla.client.admin.calls import Calls
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import check
from ottla.metadata.quota_entity import QuotaEntity, entity_parts, parse_entity
from ottla.wire.messages.client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)

Limits = dict[str, float]


@checks_calls
class Quotas:
    """`admin.quotas`: the quotas of users, client ids and addresses."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> dict[QuotaEntity, Limits]:
        """Return all quotas that are set: limits by Kafka's key, per entity. Raises OttlaError."""

        async def ask() -> dict[QuotaEntity, Limits]:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(
                broker_id, DescribeClientQuotasRequest(), DescribeClientQuotasResponse
            )
            check(answer.error_code, "describe quotas", answer.error_message)
            return {
                parse_entity([(part.entity_type, part.entity_name) for part in entry.entity]): {
                    value.key: value.value for value in entry.values
                }
                for entry in answer.entries or ()
            }

        return await self._calls.retried(ask)

    async def alter(
        self,
        entity: QuotaEntity,
        limits: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set limits of one entity, by Kafka's key (`producer_byte_rate`, bytes per second).

        None removes a limit; other keys are unchanged. With `validate_only` nothing is changed.
        Raises OttlaError (INVALID_REQUEST).
        """
        request = AlterClientQuotasRequest(
            entries=[
                EntryData(
                    entity=[
                        EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity_parts(entity)
                    ],
                    ops=[
                        OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in limits.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )

        async def alter() -> None:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(broker_id, request, AlterClientQuotasResponse)
            for entry in answer.entries:
                check(entry.error_code, f"alter the quotas of {entity}", entry.error_message)

        await self._calls.retried(alter)
