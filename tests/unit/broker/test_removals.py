"""Laws of the removal of files: after their delay, at the latest when the broker stops."""

import asyncio

from ottla.broker.partitions.removals import Removals
from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.segment.segments import Deletion

DAY_MS = 86_400_000


def disk(*names):
    filesystem = MemoryFileSystem()
    filesystem.mkdir("/d")
    for name in names:
        filesystem.open(f"/d/{name}", create=True).close()
    return filesystem


def test_files_go_after_their_delay_and_not_before():
    """One without a delay goes in a later turn of the loop, one of tomorrow stays."""

    async def scenario():
        filesystem = disk("now", "tomorrow")
        removals = Removals(asyncio.get_running_loop(), inline=True)
        removals.remove_later(Deletion(filesystem, ["/d/tomorrow"], [], DAY_MS))
        removals.remove_later(Deletion(filesystem, ["/d/now"], [], 0))
        assert sorted(filesystem.listdir("/d")) == ["now", "tomorrow"]
        gone = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0, gone.set_result, None)
        await gone
        assert filesystem.listdir("/d") == ["tomorrow"]
        removals.close()

    asyncio.run(scenario())


def test_what_still_waits_goes_when_the_broker_stops():
    """Its delay is not waited for."""

    async def scenario():
        filesystem = disk("one", "two")
        removals = Removals(asyncio.get_running_loop())
        removals.remove_later(Deletion(filesystem, ["/d/one"], [], DAY_MS))
        removals.remove_later(Deletion(filesystem, ["/d/two"], [], DAY_MS))
        removals.close()
        assert filesystem.listdir("/d") == []

    asyncio.run(scenario())


def test_a_file_that_cannot_be_removed_is_left_to_the_next_start(caplog):
    """The log says so, and the others go."""

    async def scenario():
        filesystem = disk("stuck", "free")
        filesystem.fault = lambda _operation, path: OSError(5, "I/O") if "stuck" in path else None
        removals = Removals(asyncio.get_running_loop(), inline=True)
        removals.remove_later(Deletion(filesystem, ["/d/stuck"], [], DAY_MS))
        removals.remove_later(Deletion(filesystem, ["/d/free"], [], DAY_MS))
        removals.close()
        assert filesystem.listdir("/d") == ["stuck"]

    asyncio.run(scenario())
    assert "trying again at the next start" in caplog.text


def test_on_a_full_disk_nothing_waits_for_its_delay():
    """What is deleted makes room now."""

    async def scenario():
        filesystem = disk("one", "two")
        removals = Removals(asyncio.get_running_loop(), inline=True)
        removals.remove_later(Deletion(filesystem, ["/d/one"], [], DAY_MS))
        removals.remove_later(Deletion(filesystem, ["/d/two"], [], DAY_MS))
        removals.remove_now()
        assert filesystem.listdir("/d") == []
        removals.close()

    asyncio.run(scenario())
