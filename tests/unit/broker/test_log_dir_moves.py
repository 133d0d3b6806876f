"""A log moves to another directory: power is lost, or the process killed, at each of its steps."""

import asyncio
import errno
from random import Random
from uuid import UUID

import pytest

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.replication.log_dir_moves import LogDirMoves
from ottla.broker.replication.throttles import Throttles
from ottla.record.reader import batches, records
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.memory_filesystem import MemoryFile, MemoryFileSystem
from ottla.storage.segment.config import LogConfig
from tests.unit.storage.logs import append

from .handlers.replica_world import CLUSTER, SETTINGS, World, play

TWO = {"log.dirs": "/a,/b"}
NAME = TopicPartition("t", 0)
TOPIC_ID = UUID(int=1)
BEFORE, DELETED = 20, 3


class LosesAll(Random):
    """A power cut that keeps nothing of what was not flushed."""

    def random(self):
        return 0.0

    def randint(self, low, _high):
        return low


class Disk(MemoryFileSystem):
    """A disk that dies before its operation number `dies_at`, counted from `armed` on."""

    in_memory = False

    def __init__(self, dies_at, random=None):
        super().__init__()
        self.dies_at, self.random = dies_at, random
        self.armed = self.is_dead = False
        self.count = 0
        self.acknowledged = []
        self.at_death = []
        self.fault = self._step

    def _step(self, _operation, path):
        if self.is_dead:
            return OSError(errno.EIO, "the machine is off", path)
        self.count += self.armed
        if self.armed and self.count == self.dies_at:
            self.at_death = list(self.acknowledged)
            self.is_dead = True
            self.crash(self.random)
            self.fault = self._step
            return OSError(errno.EIO, "the power is cut", path)
        return None


class ForgetsCopies(Disk):
    """A mutant: the files of copies are never flushed."""

    def open(self, path, *, create=False):
        file = super().open(path, create=create)
        if "-future" in path and path.endswith(".log"):
            return NeverFlushed(self, path, file._node)
        return file


class NeverFlushed(MemoryFile):
    __slots__ = ()

    def fsync(self):
        """Flush nothing."""


def moves_of(world):
    throttles = Throttles(BrokerSettings(SETTINGS), world.clock)
    return LogDirMoves(
        world.partitions,
        world.directories,
        throttles.moves,
        world.clock,
        world.runtime.spawn,
        world.removals,
    )


def write(world, disk, partition, value):
    """Append a record; note its value and offset once it is acknowledged."""
    offset = world.append(partition, value)

    def note(code):
        if not code:
            disk.acknowledged.append((offset, value))

    if partition.group_commit:
        partition.on_high_watermark(offset + 1, note)
    else:
        note(0)


async def move_under_writes(world, disk):
    """Move the log while records are appended to it in each turn of the loop."""
    partition = await world.host("t", 1)
    for number in range(BEFORE):
        write(world, disk, partition, b"%d" % number)
    await world.flusher.settle()
    partition.advance_log_start(DELETED)
    disk.armed = True
    moves_of(world).move("t", 0, "/b")
    await world.turn()
    number = BEFORE
    # Some more after the swap, in the new place.
    left = 20
    while left and not disk.is_dead and partition.failure is None:
        write(world, disk, partition, b"%d" % number)
        number += 1
        left -= partition.log.folder == f"/b/{NAME}"
        await asyncio.sleep(0.001)
    if not disk.is_dead:
        await world.flusher.settle()
    disk.armed = False


def survived(disk):
    """The records of the only log that a start finds, by offset."""
    disk.fault = None
    directories = LogDirectories(
        disk,
        ["/a", "/b"],
        cluster_id=CLUSTER,
        node_id=1,
        flushes_first=disk.random is not None,
    )
    log = directories.open(NAME, TOPIC_ID, LogConfig(), now_ms=0)
    with_it = [path for path in ("/a", "/b") if str(NAME) in disk.listdir(path)]
    assert with_it == [directories.home(NAME).path]
    found = {}
    for segment in log.segments:
        data = segment.file.pread(segment.size, 0)
        for position, header in batches(data):
            values = (bytes(one.value) for one in records(data, position, header))
            found |= dict(enumerate(values, header.base_offset))
    return found


def lost(disk):
    """The acknowledged records that are gone, and were not deleted."""
    found = survived(disk)
    return [one for one in disk.at_death if one[0] >= DELETED and found.get(one[0]) != one[1]]


def die_at_each_step(kind, random_of):
    """The records lost by a death at each step of a move, by step."""
    found, step = {}, 0
    while True:
        step += 1
        disk = kind(step, random_of(step))

        def world_of(settings, disk=disk):
            return World(settings, filesystem=disk, group_commit=disk.random is not None)

        try:
            play(lambda world, disk=disk: move_under_writes(world, disk), TWO, kind=world_of)
        except (OSError, OttlaError):
            assert disk.is_dead
        if not disk.is_dead:
            return found
        found[step] = lost(disk)


def any_cut(step):
    return LosesAll(1) if step % 2 else Random(step)


def test_a_loss_of_power_at_any_step_of_a_move_loses_nothing_acknowledged():
    """One of the folders is the log, with all records that were acknowledged."""
    found = die_at_each_step(Disk, any_cut)
    assert len(found) > 40
    assert {step: gone for step, gone in found.items() if gone} == {}


def test_a_kill_at_any_step_of_a_move_loses_nothing_appended():
    """Without group commit: what the kernel has is acknowledged."""
    found = die_at_each_step(Disk, lambda _step: None)
    assert len(found) > 40
    assert {step: gone for step, gone in found.items() if gone} == {}


def test_a_copy_that_is_not_flushed_loses_records():
    """The mutant that forgets it is found out."""
    assert any(die_at_each_step(ForgetsCopies, lambda _step: LosesAll(1)).values())


def test_old_folder_set_aside_before_the_copy_has_its_name_loses_the_log(monkeypatch):
    """The mutant that forgets to make the copy's name durable is found out."""
    monkeypatch.setattr(LogDirectory, "sync", lambda _self: None)
    # Appends go on beside the move, in an order that differs: some lives miss the moment.
    lives = (die_at_each_step(Disk, lambda _step: LosesAll(1)) for _ in range(8))
    assert any(any(life.values()) for life in lives)


def test_small_batches_are_copied_in_portions():
    """Other work of the loop goes on between them."""

    async def scenario(world):
        partition = await world.host("t", 1)
        for _ in range(3_000):
            world.append(partition, b"x")
        moves_of(world).move("t", 0, "/b")
        steps, end = [], 0
        while partition.log.folder != f"/b/{NAME}":
            copy = world.directories.at("/b").futures.get(NAME)
            steps.append((copy.log_end_offset if copy else end) - end)
            end += steps[-1]
            await asyncio.sleep(0)
        assert end == 3_000
        assert max(steps) <= 200

    play(scenario, TWO)


def test_a_move_that_is_taken_back_in_its_last_step_leaves_the_log_where_it_was():
    """The copy is removed, and nothing of it stays in the checkpoints."""

    async def scenario(world):
        partition = await world.host("t", 1)
        world.append(partition, b"x")
        moves = moves_of(world)
        # The last step waits for it, as for an order that is being carried out.
        async with world.partitions.changing:
            moves.move("t", 0, "/b")
            for _ in range(50):
                await world.turn()
            target = world.directories.at("/b")
            assert NAME in target.checkpoints.recovery_points
            moves.move("t", 0, "/a")
        while target.futures:
            await world.turn()
        assert partition.log.folder == f"/a/{NAME}"
        assert NAME not in target.checkpoints.recovery_points
        assert [n for n in world.filesystem.listdir("/b") if n.startswith("t-0")] == []
        world.append(partition, b"y")

    play(scenario, TWO)


@pytest.mark.parametrize("first", ["/a", "/b"])
def test_longer_log_of_two_folders_is_used_whatever_its_segments(first):
    """A copy has other segments than its source."""
    disk = MemoryFileSystem()
    for path, count in {"/a": 5, "/b": 6}.items():
        directories = LogDirectories(disk, [path], cluster_id=CLUSTER, node_id=1)
        log = directories.open(NAME, TOPIC_ID, LogConfig(), now_ms=0)
        for number in range(count):
            append(log)
            if path == "/a" and number == 3:
                log.roll(0)
        directories.close({}, clean=True)
    order = [first, "/b" if first == "/a" else "/a"]
    directories = LogDirectories(disk, order, cluster_id=CLUSTER, node_id=1)
    assert directories.home(NAME).path == "/b"
