"""LeaderAndIsr, StopReplica, LogEnds and UpdateMetadata: the controller's orders, carried out."""

from uuid import UUID

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.registration import prepare
from ottla.broker.handlers.between_brokers import LeaderAndIsr, StopReplica, UpdateMetadata
from ottla.broker.handlers.offset_ledger import LogEnds
from ottla.coordination.interface.store import Create, Set
from ottla.metadata import paths
from ottla.metadata.nodes import encode_configs
from ottla.wire.messages.between_brokers import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ottla.wire.messages.offset_ledger import LogEndsPartition, LogEndsRequest, LogEndsTopic

from .replica_world import ask, play

# Of the controller, broker 2, in its third term, to the registration 7 of broker 1.
FROM = {"controller_id": 2, "controller_epoch": 3, "broker_epoch": 7}


def refused(code, call):
    with pytest.raises(OttlaError) as caught:
        call()
    assert caught.value.code == code


def roles(leader, epoch, topic_id=1, **origin):
    state = LeaderAndIsrPartitionState(
        partition_index=0,
        leader=leader,
        leader_epoch=epoch,
        leader_broker_epoch=7,
        isr=[1, 2],
        replicas=[1, 2],
    )
    topic = LeaderAndIsrTopicState(
        topic_name="t", topic_id=UUID(int=topic_id), partition_states=[state]
    )
    return LeaderAndIsrRequest(**{**FROM, **origin}, topic_states=[topic])


def error_of_role(response):
    (topic,) = response.topics
    (partition,) = topic.partition_errors
    return ErrorCode(partition.error_code)


def test_roles_are_taken_in_the_order_of_their_terms():
    """It leads, then follows; what comes late changes nothing."""

    async def scenario(world):
        handler = LeaderAndIsr(world.orders)
        assert error_of_role(await ask(handler, roles(1, 5))) == ErrorCode.NONE
        partition = world.partitions.get("t", 0)
        assert (partition.leader is not None, partition.leader_epoch) == (True, 5)
        assert error_of_role(await ask(handler, roles(2, 6))) == ErrorCode.NONE
        assert (partition.leader, partition.leader_epoch) == (None, 6)
        assert world.fetchers.followed == [partition]
        assert error_of_role(await ask(handler, roles(1, 5))) == ErrorCode.NONE
        assert (partition.leader, partition.leader_epoch) == (None, 6)

    play(scenario)


def test_roles_of_an_order_are_logged_in_one_line(caplog):
    """An order may name thousands of partitions."""
    caplog.set_level("INFO")

    async def scenario(world):
        states = [
            LeaderAndIsrPartitionState(
                partition_index=index,
                leader=1,
                leader_epoch=3,
                leader_broker_epoch=7,
                isr=[1],
                replicas=[1],
            )
            for index in range(20)
        ]
        topic = LeaderAndIsrTopicState(
            topic_name="t", topic_id=UUID(int=1), partition_states=states
        )
        await ask(LeaderAndIsr(world.orders), LeaderAndIsrRequest(**FROM, topic_states=[topic]))
        (line,) = [each.message for each in caplog.records if "partition(s)" in each.message]
        assert line.startswith("leading 20 partition(s): t-0 in epoch 3 from offset 0 on, t-1 ")
        assert line.endswith(", ...")

    play(scenario)


def test_a_role_for_another_topic_of_the_name_is_refused():
    """The log here is that of the topic with id 1."""

    async def scenario(world):
        handler = LeaderAndIsr(world.orders)
        await ask(handler, roles(1, 5))
        other = await ask(handler, roles(1, 5, topic_id=2))
        assert error_of_role(other) == ErrorCode.INCONSISTENT_TOPIC_ID

    play(scenario)


def test_orders_of_an_old_controller_or_to_an_old_registration_are_refused():
    """STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH; no partition is opened."""

    async def scenario(world):
        handler = LeaderAndIsr(world.orders)
        for origin, code in (
            ({"broker_epoch": 6}, ErrorCode.STALE_BROKER_EPOCH),
            ({"controller_epoch": 2}, ErrorCode.STALE_CONTROLLER_EPOCH),
        ):
            order = ask(handler, roles(1, 5, **origin))
            with pytest.raises(OttlaError) as caught:
                await order
            assert caught.value.code == code
        assert len(world.partitions) == 0

    play(scenario)


def stop(epoch, *, delete):
    state = StopReplicaPartitionState(
        partition_index=0, leader_epoch=epoch, delete_partition=delete
    )
    topic = StopReplicaTopicState(topic_name="t", partition_states=[state])
    return StopReplicaRequest(**FROM, topic_states=[topic])


def error_of_stop(response):
    (partition,) = response.partition_errors
    return partition.topic_name, ErrorCode(partition.error_code)


def test_a_replica_is_stopped_and_its_log_goes_where_that_is_ordered():
    """An order of an earlier term is refused; one for a replica that is not here is done."""

    async def scenario(world):
        partition = await world.host("t", 1, epoch=5)
        handler = StopReplica(world.orders)
        late = error_of_stop(await ask(handler, stop(4, delete=True)))
        assert late == ("t", ErrorCode.FENCED_LEADER_EPOCH)
        assert partition.leader is not None
        assert error_of_stop(await ask(handler, stop(6, delete=False))) == ("t", ErrorCode.NONE)
        assert partition.leader is None
        assert world.partitions.find("t", 0) is partition
        assert error_of_stop(await ask(handler, stop(-2, delete=True))) == ("t", ErrorCode.NONE)
        assert world.partitions.find("t", 0) is None
        assert error_of_stop(await ask(handler, stop(6, delete=True))) == ("t", ErrorCode.NONE)

    play(scenario)


def ends(epoch, topic_id=1, controller_epoch=3):
    topic = LogEndsTopic(
        topic_name="t",
        topic_id=UUID(int=topic_id),
        partitions=[LogEndsPartition(partition_index=0, leader_epoch=epoch)],
    )
    return LogEndsRequest(
        controller_id=2, controller_epoch=controller_epoch, broker_epoch=7, topics=[topic]
    )


def end_of(response):
    (topic,) = response.topics
    (end,) = topic.partitions
    return ErrorCode(end.error_code), end.latest_epoch, end.start_offset, end.end_offset


def test_the_end_of_a_log_is_told_in_the_term_that_is_asked_for():
    """And in no other, nor for another topic of the name."""

    async def scenario(world):
        partition = await world.host("t", 1, epoch=5)
        world.append(partition, b"a", b"b")
        await world.host("t", 1, leader=-1, epoch=6)
        handler = LogEnds(world.orders)
        assert end_of(ask(handler, ends(6))) == (ErrorCode.NONE, 5, 0, 2)
        for request, code in (
            (ends(5), ErrorCode.FENCED_LEADER_EPOCH),
            (ends(7), ErrorCode.UNKNOWN_LEADER_EPOCH),
            (ends(6, topic_id=2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            assert end_of(ask(handler, request)) == (code, -1, -1, -1)
        old = ends(6, controller_epoch=2)
        refused(ErrorCode.STALE_CONTROLLER_EPOCH, lambda: ask(handler, old))

    play(scenario)


def update(**origin):
    state = UpdateMetadataPartitionState(
        partition_index=0, leader=2, leader_epoch=4, isr=[2], replicas=[2, 1]
    )
    topic = UpdateMetadataTopicState(topic_name="t", topic_id=UUID(int=1), partition_states=[state])
    broker = UpdateMetadataBroker(id=2, endpoints=[], epoch=9)
    return UpdateMetadataRequest(**{**FROM, **origin}, topic_states=[topic], live_brokers=[broker])


def test_the_view_becomes_what_the_controller_says():
    """Its brokers, its topics, and the controller itself."""

    async def scenario(world):
        handler = UpdateMetadata(world.orders)
        assert (await ask(handler, update(), broker=2)).error_code == ErrorCode.NONE
        image = world.view.image
        assert image.controller_id == 2
        assert [(b.id, b.epoch) for b in image.brokers.values()] == [(2, 9)]
        state = image.partition("t", 0)
        assert (state.leader, state.leader_epoch, state.isr) == (2, 4, (2,))

    play(scenario)


def test_settings_of_a_topic_that_is_not_shown_yet_are_those_of_now():
    """An update may fail after they were read, and they may change before the next one."""

    async def scenario(world):
        await prepare(world.store)
        path, wanted = paths.topic_config("t"), {"t": UUID(int=1)}
        await world.store.multi([Create(path, encode_configs({"retention.ms": "1"}))])
        assert await world.updates.configs_of(wanted) == {"t": {"retention.ms": "1"}}
        await world.store.multi([Set(path, encode_configs({"retention.ms": "2"}))])
        assert await world.updates.configs_of(wanted) == {"t": {"retention.ms": "2"}}

    play(scenario)


def test_an_update_that_is_not_the_controllers_changes_nothing():
    """Over a connection of another broker, or of an epoch that is over."""

    async def scenario(world):
        handler = UpdateMetadata(world.orders)
        with pytest.raises(OttlaError) as caught:
            await ask(handler, update(), broker=3)
        assert caught.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await ask(handler, update(), broker=2)
        before = world.view.image
        with pytest.raises(OttlaError) as caught:
            await ask(handler, update(controller_epoch=2), broker=2)
        assert caught.value.code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert world.view.image is before

    play(scenario)
