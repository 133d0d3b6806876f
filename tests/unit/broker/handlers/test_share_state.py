"""The five requests about share state between brokers, without a socket."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.share_group_state import (
    DeleteShareGroupState,
    InitializeShareGroupState,
    ReadShareGroupState,
    ReadShareGroupStateSummary,
    WriteShareGroupState,
)
from ottla.broker.requests.handler import Handler
from ottla.wire.messages import share_group_state

from .coordinators_world import TOPIC_IDS, World, code, play

STATE = "__share_group_state"
T = TOPIC_IDS["t"]
ACKNOWLEDGED = 2


async def call(world: World, handler: Handler, request: Any, version: int = 0) -> Any:
    """The answer for the only partition of a request."""
    ((topic,),) = [(await world.call(handler, request, version)).results]
    assert topic.topic_id == T
    (part,) = topic.partitions
    return part


def initialize_request(epoch: int = 1) -> Any:
    part = share_group_state.InitializePartitionData(partition=0, state_epoch=epoch, start_offset=5)
    data = share_group_state.InitializeStateData(topic_id=T, partitions=[part])
    return share_group_state.InitializeShareGroupStateRequest(group_id="g", topics=[data])


async def initialize(world: World, epoch: int = 1) -> str:
    handler = InitializeShareGroupState(world.persister)
    return code((await call(world, handler, initialize_request(epoch))).error_code)


def write_request(state_epoch: int = 1) -> Any:
    batch = share_group_state.StateBatch(
        first_offset=7, last_offset=8, delivery_state=ACKNOWLEDGED, delivery_count=1
    )
    part = share_group_state.WritePartitionData(
        partition=0,
        state_epoch=state_epoch,
        leader_epoch=3,
        start_offset=6,
        delivery_complete_count=2,
        state_batches=[batch],
    )
    data = share_group_state.WriteStateData(topic_id=T, partitions=[part])
    return share_group_state.WriteShareGroupStateRequest(group_id="g", topics=[data])


async def write(world: World, state_epoch: int = 1) -> str:
    handler = WriteShareGroupState(world.persister)
    return code((await call(world, handler, write_request(state_epoch), 1)).error_code)


def read_request(leader_epoch: int = 3) -> Any:
    part = share_group_state.ReadPartitionData(partition=0, leader_epoch=leader_epoch)
    data = share_group_state.ReadStateData(topic_id=T, partitions=[part])
    return share_group_state.ReadShareGroupStateRequest(group_id="g", topics=[data])


def summary_request() -> Any:
    part = share_group_state.ReadPartitionData(partition=0, leader_epoch=3)
    data = share_group_state.ReadStateData(topic_id=T, partitions=[part])
    return share_group_state.ReadShareGroupStateSummaryRequest(group_id="g", topics=[data])


def delete_request() -> Any:
    data = share_group_state.DeleteStateData(
        topic_id=T, partitions=[share_group_state.DeletePartitionData(partition=0)]
    )
    return share_group_state.DeleteShareGroupStateRequest(group_id="g", topics=[data])


def test_state_is_initialized_written_and_read() -> None:
    """The whole of it by a read, its numbers by a summary."""

    async def scenario(world: World) -> None:
        assert await initialize(world) == "NONE"
        assert await write(world) == "NONE"
        part = await call(world, ReadShareGroupState(world.persister), read_request())
        assert (part.error_code, part.state_epoch, part.start_offset) == (0, 1, 6)
        assert [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in part.state_batches
        ] == [(7, 8, ACKNOWLEDGED, 1)]
        handler = ReadShareGroupStateSummary(world.persister)
        part = await call(world, handler, summary_request(), 1)
        assert (part.error_code, part.state_epoch, part.leader_epoch) == (0, 1, 3)
        assert (part.start_offset, part.delivery_complete_count) == (6, 2)

    play(scenario, STATE, "t")


def test_an_older_epoch_is_fenced() -> None:
    """That of the state by initialize and write, that of the leader by read."""

    async def scenario(world: World) -> None:
        assert await initialize(world, 2) == "NONE"
        assert await initialize(world, 1) == "FENCED_STATE_EPOCH"
        assert await write(world, 1) == "FENCED_STATE_EPOCH"
        assert await write(world, 2) == "NONE"
        part = await call(world, ReadShareGroupState(world.persister), read_request(2))
        assert code(part.error_code) == "FENCED_LEADER_EPOCH"

    play(scenario, STATE, "t")


def test_deleted_state_is_gone() -> None:
    """To delete it again is no error."""

    async def scenario(world: World) -> None:
        await initialize(world)
        for _ in range(2):
            part = await call(world, DeleteShareGroupState(world.persister), delete_request())
            assert code(part.error_code) == "NONE"
        part = await call(world, ReadShareGroupState(world.persister), read_request())
        assert code(part.error_code) == "UNKNOWN_TOPIC_OR_PARTITION"

    play(scenario, STATE, "t")


def test_state_that_is_coordinated_elsewhere_is_refused_for_each_partition() -> None:
    """Before there is `__share_group_state` no broker coordinates it."""

    async def scenario(world: World) -> None:
        requests: list[tuple[Handler, Any]] = [
            (InitializeShareGroupState(world.persister), initialize_request()),
            (WriteShareGroupState(world.persister), write_request()),
            (ReadShareGroupState(world.persister), read_request()),
            (ReadShareGroupStateSummary(world.persister), summary_request()),
            (DeleteShareGroupState(world.persister), delete_request()),
        ]
        for handler, request in requests:
            part = await call(world, handler, request)
            assert (code(part.error_code), part.error_message) == (
                "NOT_COORDINATOR",
                "this broker does not coordinate share partition 'g:AAAAAAAAAAAAAAAAAAAABA:0'; "
                "find its coordinator again",
            )
            failed = handler.on_error(request, ErrorCode.INVALID_REQUEST, "why", 0)
            (part,) = failed.results[0].partitions
            assert (code(part.error_code), part.error_message) == ("INVALID_REQUEST", "why")

    play(scenario, "t")
