"""ShareFetch and ShareAcknowledge, without a socket."""

from typing import Any

from ottla.broker.handlers.consumer_groups import ShareGroupHeartbeat
from ottla.broker.handlers.share_records import ShareAcknowledge, ShareFetch
from ottla.record.reader import batches, records
from ottla.wire.messages import share_records
from ottla.wire.messages.consumer_groups import ShareGroupHeartbeatRequest

from .coordinators_world import TOPIC_IDS, TWO, Connection, World, code, play

TOPICS = ("__consumer_offsets", "__share_group_state", "t")
T = TOPIC_IDS["t"]
ACCEPT, RENEW = 1, 4


class Member:
    """A member of group g, with a connection of its own."""

    def __init__(self, world: World, member_id: str = "m") -> None:
        self.world = world
        self.id = member_id
        self.connection = Connection()
        self.fetching = ShareFetch(
            world.view,
            world.runtime,
            world.settings,
            world.sharing,
            world.group_settings,
            world.new_leaders,
        )
        self.acknowledging = ShareAcknowledge(
            world.view, world.sharing, world.group_settings, world.new_leaders
        )

    async def join(self) -> None:
        """From the log's start."""
        self.world.configure_group("g", share_auto_offset_reset="earliest")
        handler = ShareGroupHeartbeat(
            self.world.view, self.world.groups, self.world.group_settings, self.world.group_state
        )
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=self.id, member_epoch=0, subscribed_topic_names=["t"]
        )
        assert (await self.world.call(handler, request, 1)).error_code == 0

    async def fetch(self, epoch: int, topic_id: Any = T, **fields: Any) -> Any:
        """Waits for one byte."""
        topic = share_records.FetchTopic(
            topic_id=topic_id, partitions=[share_records.FetchPartition(partition_index=0)]
        )
        wait: dict[str, Any] = {"max_wait_ms": 3_600_000, "min_bytes": 1, "topics": [topic]}
        request = share_records.ShareFetchRequest(
            group_id="g",
            member_id=self.id,
            share_session_epoch=epoch,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            **(wait | fields),
        )
        return await self.world.call(self.fetching, request, 2, self.connection)

    async def acknowledge(
        self, epoch: int, first: int, last: int, kind: int = ACCEPT, *, is_renew: bool = False
    ) -> Any:
        batch = share_records.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=[kind]
        )
        part = share_records.FetchPartition(partition_index=0, acknowledgement_batches=[batch])
        request = share_records.ShareAcknowledgeRequest(
            group_id="g",
            member_id=self.id,
            share_session_epoch=epoch,
            is_renew_ack=is_renew,
            topics=[share_records.FetchTopic(topic_id=T, partitions=[part])],
        )
        return await self.world.call(self.acknowledging, request, 2, self.connection)


def values(part: Any) -> list[bytes | None]:
    data = bytes(part.records or b"")
    return [
        record.value
        for position, header in batches(data)
        for record in records(data, position, header)
    ]


def test_records_are_acquired_and_acknowledged() -> None:
    """Within one session. Records that were not acquired are INVALID_RECORD_STATE."""

    async def scenario(world: World) -> None:
        world.write("t", b"one", b"two")
        member = Member(world)
        await member.join()
        answer = await member.fetch(0)
        (topic,) = answer.responses
        (part,) = topic.partitions
        assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000)
        assert (topic.topic_id, values(part)) == (T, [b"one", b"two"])
        assert [
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in part.acquired_records
        ] == [(0, 1, 1)]
        answer = await member.acknowledge(1, 0, 1)
        assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000)
        assert answer.responses[0].partitions[0].error_code == 0
        stray = await member.acknowledge(2, 5, 5)
        assert code(stray.responses[0].partitions[0].error_code) == "INVALID_RECORD_STATE"

    play(scenario, *TOPICS)


def test_a_member_whose_connection_is_lost_releases_its_records() -> None:
    """Another member gets them as a second delivery."""

    async def scenario(world: World) -> None:
        world.write("t", b"one")
        first, second = Member(world, "a"), Member(world, "b")
        await first.join()
        await second.join()
        await first.fetch(0)
        for on_lost in first.connection.on_lost:
            on_lost()
        (part,) = (await second.fetch(0)).responses[0].partitions
        assert [(each.first_offset, each.delivery_count) for each in part.acquired_records] == [
            (0, 2)
        ]

    play(scenario, *TOPICS)


def test_a_session_begins_with_a_fetch_and_goes_on_in_order() -> None:
    """INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_NOT_FOUND; acknowledgements cannot come first."""

    async def scenario(world: World) -> None:
        member = Member(world)
        await member.join()
        assert code((await member.acknowledge(0, 0, 0)).error_code) == "INVALID_SHARE_SESSION_EPOCH"
        assert code((await member.acknowledge(1, 0, 0)).error_code) == "SHARE_SESSION_NOT_FOUND"
        assert code((await member.fetch(1)).error_code) == "SHARE_SESSION_NOT_FOUND"
        await member.fetch(0, max_wait_ms=0)
        assert code((await member.fetch(7)).error_code) == "INVALID_SHARE_SESSION_EPOCH"
        batch = share_records.AcknowledgementBatch(
            first_offset=0, last_offset=0, acknowledge_types=[ACCEPT]
        )
        part = share_records.FetchPartition(partition_index=0, acknowledgement_batches=[batch])
        topics = [share_records.FetchTopic(topic_id=T, partitions=[part])]
        assert code((await member.fetch(0, topics=topics)).error_code) == "INVALID_REQUEST"

    play(scenario, *TOPICS)


def test_requests_without_a_member_and_hidden_renewals_are_invalid() -> None:
    """INVALID_REQUEST above all partitions."""

    async def scenario(world: World) -> None:
        nameless = Member(world, "")
        assert code((await nameless.fetch(0)).error_code) == "INVALID_REQUEST"
        assert code((await nameless.acknowledge(1, 0, 0)).error_code) == "INVALID_REQUEST"
        answer = await Member(world).acknowledge(1, 0, 0, RENEW)
        assert (code(answer.error_code), answer.error_message) == (
            "INVALID_REQUEST",
            "the request has acknowledge type 4 (renew) but IsRenewAck is false: set IsRenewAck",
        )

    play(scenario, *TOPICS)


def test_a_partition_that_is_led_elsewhere_is_answered_with_its_leader() -> None:
    """KIP-951: and with how to reach it."""

    async def scenario(world: World) -> None:
        await world.create("elsewhere", leader=TWO)
        member = Member(world)
        answer = await member.fetch(0, TOPIC_IDS["elsewhere"])
        (part,) = answer.responses[0].partitions
        assert code(part.error_code) == "NOT_LEADER_OR_FOLLOWER"
        assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (2, 0)
        assert [(each.node_id, each.host, each.port) for each in answer.node_endpoints] == [
            (2, "host2", 9092)
        ]

    play(scenario, *TOPICS)


def test_share_requests_are_refused_while_the_feature_is_off() -> None:
    """share.version 0."""

    async def scenario(world: World) -> None:
        world.view.replace(world.view.image.with_features({"share.version": 0}, 2))
        member = Member(world)
        assert code((await member.fetch(0)).error_code) == "UNSUPPORTED_VERSION"
        assert code((await member.acknowledge(1, 0, 0)).error_code) == "UNSUPPORTED_VERSION"

    play(scenario, *TOPICS)
