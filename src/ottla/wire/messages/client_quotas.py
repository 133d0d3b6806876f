"""Messages to read and change the quotas of clients."""

from ottla.wire.notation import Message, array, boolean, float64, int8, int16, int32, string


class ComponentData(Message):
    """An element of `DescribeClientQuotasRequest.components`."""

    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(nullable="0+")


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    """DescribeClientQuotas (key 48): list the quotas that match a filter (KIP-546).

    A match type of 0 means an exact name, 1 the default entity, 2 any name. Version 1 is flexible.
    """

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class EntityData(Message):
    """An element of `DescribedEntryData.entity`."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


class ValueData(Message):
    """An element of `DescribedEntryData.values`."""

    key: str = string()
    value: float = float64()


class DescribedEntryData(Message):
    """An element of `DescribeClientQuotasResponse.entries`."""

    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    """A DescribeClientQuotas response."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entries: list[DescribedEntryData] | None = array(DescribedEntryData, nullable="0+")


class OpData(Message):
    """An element of `EntryData.ops`."""

    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class EntryData(Message):
    """An element of `AlterClientQuotasRequest.entries`."""

    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    """AlterClientQuotas (key 49): set or remove quotas (KIP-546).

    An entity with a null name is the default entity. Version 1 is flexible.

    The part of the response with the same name as a part of the request has the suffix `Response`:
    EntryDataResponse.
    """

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class EntryDataResponse(Message):
    """An element of `AlterClientQuotasResponse.entries`."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    """An AlterClientQuotas response."""

    throttle_time_ms: int = int32()
    entries: list[EntryDataResponse] = array(EntryDataResponse)
