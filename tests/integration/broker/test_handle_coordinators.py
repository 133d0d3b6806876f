"""FindCoordinator, InitProducerId, DescribeLogDirs."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.metadata.topic_plan import RequestedTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.transactions import InitProducerIdRequest
from tests.integration.broker.inprocess import run

FEW = {"offsets.topic.num.partitions": "3"}


@pytest.mark.parametrize("version", range(4))
def test_a_group_has_a_coordinator(version):
    """Versions 0-3 ask for one key; the offsets topic is made for it."""

    async def scenario(caller):
        answer = await caller.call(FindCoordinatorRequest(key="g"), version)
        assert (answer.error_code, answer.node_id) == (0, 1)
        assert (answer.host, answer.port) == ("127.0.0.1", caller.broker.port)
        offsets = caller.broker.image.topic("__consumer_offsets")
        assert (len(offsets.partitions), offsets.replication_factor) == (3, 1)
        assert offsets.configs["cleanup.policy"] == "compact"
        assert offsets.is_internal

    run(scenario, FEW)


@pytest.mark.parametrize("version", range(4, 7))
def test_many_groups_are_asked_for_at_once(version):
    """Versions 4-6 (KIP-699)."""

    async def scenario(caller):
        request = FindCoordinatorRequest(coordinator_keys=["a", "b"])
        answer = await caller.call(request, version)
        assert [(c.key, c.node_id, c.error_code, c.port) for c in answer.coordinators] == [
            ("a", 1, 0, caller.broker.port),
            ("b", 1, 0, caller.broker.port),
        ]

    run(scenario, FEW)


def test_the_offsets_topic_has_as_many_replicas_as_there_are_brokers():
    """Kafka's default of three would leave a single broker without groups."""

    async def scenario(caller):
        assert (await caller.call(FindCoordinatorRequest(key="g"), 1)).error_code == 0

    run(scenario, FEW)


def test_who_sets_how_many_replicas_offsets_have_waits_for_brokers():
    """As in Kafka: clients look for the coordinator again until enough brokers are there."""

    async def scenario(caller):
        answer = await caller.call(FindCoordinatorRequest(key="g"), 1)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "offsets.topic.replication.factor asks for 3" in answer.error_message

    run(scenario, {"offsets.topic.replication.factor": "3", **FEW})


def test_a_transactional_id_has_a_coordinator():
    """`__transaction_state` is made for it, and only that."""

    async def scenario(caller):
        request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=1)
        answer = await caller.call(request, 6)
        assert [(c.key, c.node_id, c.error_code) for c in answer.coordinators] == [
            ("a", 1, 0),
            ("b", 1, 0),
        ]
        (topic,) = caller.broker.image.topics.values()
        assert (topic.name, len(topic.partitions)) == ("__transaction_state", 4)
        assert topic.configs["cleanup.policy"] == "compact"

    run(scenario, {"transaction.state.log.num.partitions": "4"})


@pytest.mark.parametrize(("key_type", "code"), [(2, "INVALID_REQUEST"), (3, "INVALID_REQUEST")])
def test_other_coordinators_are_not_there(key_type, code):
    """Share groups (2), and what does not exist, told for every key."""

    async def scenario(caller):
        single = await caller.call(FindCoordinatorRequest(key="x", key_type=key_type), 3)
        assert ErrorCode(single.error_code).name == code
        assert single.error_message
        request = FindCoordinatorRequest(coordinator_keys=["x", "y"], key_type=key_type)
        both = (await caller.call(request, 6)).coordinators
        assert [(c.key, ErrorCode(c.error_code).name) for c in both] == [("x", code), ("y", code)]
        assert dict(caller.broker.image.topics) == {}

    run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_an_idempotent_producer_gets_an_id_of_its_own(version):
    """Versions 0-5; the epoch is 0."""

    async def scenario(caller):
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answers = [await caller.call(request, version) for _ in range(3)]
        assert [a.error_code for a in answers] == [0, 0, 0]
        assert [(a.producer_id, a.producer_epoch) for a in answers] == [(0, 0), (1, 0), (2, 0)]

    run(scenario)


def test_a_transactional_id_needs_its_coordinator():
    """Nobody has looked for it: this broker is not the one."""

    async def scenario(caller):
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
        answer = await caller.call(request, 4)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.NOT_COORDINATOR, -1)
        request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        assert (await caller.call(request, 4)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario)


def test_half_a_producer_is_an_invalid_request():
    """An id without its epoch (KIP-360)."""

    async def scenario(caller):
        request = InitProducerIdRequest(transactional_id=None, producer_id=5)
        assert (await caller.call(request, 3)).error_code == ErrorCode.INVALID_REQUEST

    run(scenario)


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs_are_described_with_volumes_and_partitions(version):
    """Versions 1-5; volumes from 4 on (KIP-827)."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create(
            [RequestedTopic("t", 2, 1), RequestedTopic("u", 1, 1)]
        )
        answer = await caller.call(DescribeLogDirsRequest(topics=None), version)
        first, second = answer.results
        assert [r.log_dir for r in answer.results] == ["/one", "/two"]
        told = {
            (topic.name, partition.partition_index, partition.partition_size)
            for result in (first, second)
            for topic in result.topics
            for partition in topic.partitions
        }
        assert told == {("t", 0, 0), ("t", 1, 0), ("u", 0, 0)}
        if version >= 4:
            assert first.total_bytes >= first.usable_bytes > 0
        if version >= 5:
            assert [r.is_cordoned for r in answer.results] == [False, True]

    run(scenario, {"log.dirs": "/one,/two", "cordoned.log.dirs": "/two"})


def test_only_the_partitions_asked_for_are_described():
    """Every directory is told, also without any of them."""

    async def scenario(caller):
        await caller.broker.parts.metadata.topics.create([RequestedTopic("t", 2, 1)])
        wanted = [DescribableLogDirTopic(topic="t", partitions=[1, 9])]
        answer = await caller.call(DescribeLogDirsRequest(topics=wanted), 4)
        (result,) = answer.results
        assert [p.partition_index for p in result.topics[0].partitions] == [1]
        (empty,) = (await caller.call(DescribeLogDirsRequest(topics=[]), 4)).results
        assert empty.topics == []

    run(scenario)
