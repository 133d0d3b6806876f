"""ControlledShutdown (key 7): a broker asks the controller to move its leaderships elsewhere.

As in Kafka 3.9, between brokers only. Version 0 has a header without a client id, and is
not sent any more; 2 adds the broker's epoch (KIP-380), 3 is flexible.
"""

from ottla.wire.notation import Message, array, int16, int32, int64, string


class ControlledShutdownRequest(Message, api_key=7, versions="0-3", flexible="3+"):
    """A ControlledShutdown request."""

    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class RemainingPartition(Message):
    """An element of `ControlledShutdownResponse.remaining_partitions`."""

    topic_name: str = string()
    partition_index: int = int32()


class ControlledShutdownResponse(Message, api_key=7, versions="0-3", flexible="3+"):
    """A ControlledShutdown response."""

    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array(RemainingPartition)
