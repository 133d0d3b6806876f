"""ClientUsage and ClientDelays: who uses topics, and what their requests waited for."""

from ottla.base.errors import ErrorCode
from ottla.broker.handlers.client_use import ClientDelays, ClientUsage
from ottla.broker.runtime.part import StopMode
from ottla.broker.usage.delays import COMMIT_FOLLOWER, FailureKey, Wait
from ottla.broker.usage.part import USAGE_FILE, UsagePart
from ottla.broker.usage.table import FETCH, PRODUCE
from ottla.wire.messages.client_use import ClientDelaysRequest, ClientUsageRequest

from .replica_world import Line, call, play

PARTITION = ("t", 0)


def usage_of(world, *, clean=True):
    return UsagePart(
        world.runtime, world.view, world.directories, StopMode(clean=clean, hands_over=False)
    )


def test_the_users_of_topics_are_listed_with_their_software():
    """For each direction, with the bytes, over all connections of a client."""

    async def scenario(world):
        await world.host("t", 1)
        usage = usage_of(world)
        await usage.write()
        line = Line()
        line.software, line.software_version = "lib", "1.2"
        usage.of(line).of("t", PRODUCE, "writer").bytes += 10
        usage.of(line).of("t", PRODUCE, "writer").bytes += 5
        usage.of(Line()).count_fetch("reader", [("t", 7), ("u", 0)], 7)
        answer = await call(ClientUsage(usage), ClientUsageRequest(topics=["t"]))
        (topic,) = answer.topics
        assert topic.since_ms == world.clock.now_ms()
        found = [
            (one.direction, one.client_id, one.principal, one.library, one.size_bytes)
            for one in topic.uses
        ]
        assert found == [
            (PRODUCE, "writer", "User:ANONYMOUS", "lib 1.2", 15),
            (FETCH, "reader", "User:ANONYMOUS", "", 7),
        ]
        everything = await call(ClientUsage(usage), ClientUsageRequest(topics=None))
        assert [one.topic for one in everything.topics] == ["t"]

    play(scenario)


def test_the_table_is_in_a_file_from_one_start_to_the_next():
    """After a crash the broker says that uses may be missing; a bad file is as none."""

    async def scenario(world):
        await world.host("t", 1)
        for clean, gap in ((True, False), (False, True)):
            usage = usage_of(world, clean=clean)
            await usage.start()
            usage.of(Line()).of("t", PRODUCE, "writer").bytes += 10
            await usage.write()
            await usage.stop()
            again = usage_of(world)
            await again.start()
            assert [one.key.client_id for one in again.table] == ["writer"]
            assert (again.table.gap_ms >= 0) == gap
        path = f"{world.directories.online[0].path}/{USAGE_FILE}"
        world.directories.filesystem.unlink(path)
        file = world.directories.filesystem.open(path, create=True)
        file.append(b"\xff damaged")
        file.close()
        again = usage_of(world)
        await again.start()
        assert len(again.table) == 0

    play(scenario)


def test_slow_and_failed_requests_are_described_by_client():
    """With what they waited for; clients without any are left out."""

    async def scenario(world):
        usage = usage_of(world)
        notes = usage.of(Line())
        notes.note_slow("c", 0, 99, Wait(COMMIT_FOLLOWER, "3"))
        notes.note_slow("c", 0, 250, Wait(COMMIT_FOLLOWER, "3"))
        usage.delays.note_failure(
            "c", 5, FailureKey(1, ErrorCode.OFFSET_OUT_OF_RANGE, "t", 2), "at 9"
        )
        answer = await call(ClientDelays(usage), ClientDelaysRequest(client_ids=["c", "d"]))
        (client,) = answer.clients
        (reason,) = client.reasons
        assert (reason.reason, reason.detail, reason.count, reason.total_ms) == (
            "follower",
            "3",
            1,
            250,
        )
        assert [one.took_ms for one in client.slowest] == [250]
        (failure,) = client.failures
        assert (failure.topic, failure.partition, failure.detail) == ("t", 2, "at 9")
        assert usage.status().slow_requests == 1

    play(scenario)
