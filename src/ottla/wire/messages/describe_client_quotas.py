"""DescribeClientQuotas (key 48): the quotas that match a filter (KIP-546).

Match types: 0 exact name, 1 the default entity, 2 any name. Version 1 is flexible.
"""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, string


class ComponentData(Message):
    """An element of `DescribeClientQuotasRequest.components`."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    """A DescribeClientQuotas request."""

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class EntityData(Message):
    """An element of `EntryData.entity`."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ValueData(Message):
    """An element of `EntryData.values`."""

    key: str = string()
    value: float = float64()


class EntryData(Message):
    """An element of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    """A DescribeClientQuotas response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[EntryData] | None = array(EntryData, nullable="0+")
