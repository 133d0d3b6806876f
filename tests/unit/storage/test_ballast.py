"""Laws of the ballast: it holds all of its room or none, and gives it up once."""

from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.disk.reserve import BALLAST, BALLAST_BYTES, Ballast


def directory(capacity_bytes):
    filesystem = MemoryFileSystem(capacity_bytes=capacity_bytes)
    filesystem.mkdir("/data")
    return filesystem


def test_the_room_of_the_ballast_is_free_after_it_was_given_up():
    """And a second time there is none to give."""
    filesystem = directory(3 * BALLAST_BYTES)
    ballast = Ballast(filesystem, "/data")
    ballast.make()
    assert filesystem.free_bytes("/data") == 2 * BALLAST_BYTES
    assert ballast.give_up()
    assert filesystem.free_bytes("/data") == 3 * BALLAST_BYTES
    assert not ballast.give_up()


def test_a_disk_without_room_for_the_ballast_has_no_part_of_it():
    """It is made when there is room."""
    filesystem = directory(BALLAST_BYTES - 1)
    ballast = Ballast(filesystem, "/data")
    ballast.make()
    assert not filesystem.exists(f"/data/{BALLAST}")
    filesystem.capacity_bytes = BALLAST_BYTES
    ballast.make()
    assert filesystem.size(f"/data/{BALLAST}") == BALLAST_BYTES


def test_the_ballast_of_an_earlier_run_is_given_up_too():
    """A broker that starts on a full disk has the one that was made before."""
    filesystem = directory(BALLAST_BYTES)
    Ballast(filesystem, "/data").make()
    assert Ballast(filesystem, "/data").give_up()
    assert filesystem.free_bytes("/data") == BALLAST_BYTES
