"""The files of the audit log: after crashes and power cuts, by size, and on a full disk."""

import contextlib
import errno
import io
import logging
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from ottla.base.errors import OttlaError
from ottla.broker.audit.files import AuditFiles, AuditLimits
from ottla.broker.audit.writer import AuditWriter
from ottla.security.audit.chain import Head, head_name, parse_file_name, parse_head, parse_line
from ottla.security.audit.verification import ChainCheck, Verified
from ottla.storage.disk.memory_filesystem import MemoryFileSystem

FOLDER = "/data"
LIMITS = AuditLimits(file_bytes=1 << 20, retention_bytes=-1)
SMALL = AuditLimits(file_bytes=2_000, retention_bytes=-1)
Event = Mapping[str, Any]


def stamp_of(broker: int = 1) -> Any:
    return lambda event: {**event, "broker": broker, "time": "2026-01-01T00:00:00.000Z"}


def opened(
    filesystem: MemoryFileSystem, limits: AuditLimits = LIMITS, broker: int = 1
) -> AuditFiles:
    files = AuditFiles(filesystem, FOLDER, broker, limits, stamp_of(broker))
    files.open()
    return files


def event(number: int, broker: int = 1) -> Event:
    stamped: Event = stamp_of(broker)({"event": "denied", "principal": f"User:{number}"})
    return stamped


def names(filesystem: MemoryFileSystem, broker: int = 1) -> list[str]:
    found = sorted(filter(None, map(parse_file_name, filesystem.listdir(FOLDER))))
    return [file.name for file in found if file.broker == broker]


def content(filesystem: MemoryFileSystem, name: str) -> bytes:
    return filesystem.read_bytes(f"{FOLDER}/{name}")


def events(filesystem: MemoryFileSystem, broker: int = 1) -> list[str]:
    lines = b"".join(content(filesystem, name) for name in names(filesystem, broker))
    return [line.event for line in map(parse_line, lines.split(b"\n")) if line is not None]


def verified(filesystem: MemoryFileSystem, broker: int = 1) -> Verified:
    head = f"{FOLDER}/{head_name(broker)}"
    noted = parse_head(filesystem.read_bytes(head)) if filesystem.exists(head) else None
    check = ChainCheck(broker, noted=noted)
    for name in names(filesystem, broker):
        file = parse_file_name(name)
        assert file is not None
        check.read(file, io.BytesIO(content(filesystem, name)))
    return check.finish()


def test_a_broker_goes_on_behind_the_last_line() -> None:
    """The line of each start says whether the run before it ended in order."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(1), stamp_of()({"event": "stop"})])
    files.sync()
    files.close()
    files = opened(filesystem)
    files.append([event(2)])
    files.sync()
    files.close()
    opened(filesystem)
    assert events(filesystem) == ["start", "denied", "stop", "start", "denied", "start"]
    starts = [
        line.fields["after_stop"]
        for line in map(parse_line, content(filesystem, names(filesystem)[0]).split(b"\n"))
        if line is not None and line.event == "start"
    ]
    assert starts == [True, True, False]
    assert verified(filesystem).intact


def test_files_are_rolled_by_size_and_the_chain_goes_on() -> None:
    """From file to file, and over a start."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem, SMALL)
    for number in range(40):
        files.append([event(number)])
    files.sync()
    files.close()
    opened(filesystem, SMALL)
    assert len(names(filesystem)) > 3
    found = verified(filesystem)
    assert (found.first, found.last, found.intact) == (1, 42, True)


def test_retention_removes_the_oldest_files_and_says_so_before() -> None:
    """What is gone is excused by a line of the chain."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem, AuditLimits(file_bytes=2_000, retention_bytes=6_000))
    for number in range(100):
        files.append([event(number)])
    found = verified(filesystem)
    assert found.first > 1
    assert found.intact, found
    assert "removed" in events(filesystem)
    assert sum(len(content(filesystem, name)) for name in names(filesystem)) < 9_000


@pytest.mark.parametrize("torn", [b'{"event":"den', b"\x00" * 100, b"\n\n", b"a\nb\n"])
def test_a_torn_line_is_on_record_after_the_next_start(torn: bytes) -> None:
    """Its bytes stay where they are."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(1)])
    filesystem.open(f"{FOLDER}/{names(filesystem)[0]}").append(torn)
    filesystem.crash()
    opened(filesystem)
    assert events(filesystem) == ["start", "denied", "torn", "start"]
    found = verified(filesystem)
    assert found.intact, found
    assert len(found.notes) == 1


def test_an_end_that_was_cut_off_is_found_at_the_next_start() -> None:
    """The head file knew more lines; the chain goes on behind their numbers."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(number) for number in range(5)])
    files.sync()
    files.close()
    name = names(filesystem)[0]
    kept = b"".join(content(filesystem, name).splitlines(keepends=True)[:3])
    filesystem.open(f"{FOLDER}/{name}").truncate(len(kept))
    assert [problem.text for problem in verified(filesystem).problems] == [
        "the end is cut off: the head file knows lines 4 to 6"
    ]
    opened(filesystem)
    (problem,) = verified(filesystem).problems
    assert problem.text == "the broker found that lines 4 to 6 had been cut off"


def test_a_last_line_that_was_changed_is_found_at_the_next_start() -> None:
    """The chain alone would not know it."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(7)])
    files.sync()
    files.close()
    path = f"{FOLDER}/{names(filesystem)[0]}"
    forged = filesystem.read_bytes(path).replace(b"User:7", b"User:8")
    filesystem.open(path).truncate(0)
    filesystem.open(path).append(forged)
    assert not verified(filesystem).intact
    opened(filesystem)
    assert [problem.text for problem in verified(filesystem).problems] == [
        "the broker found the line before it changed"
    ]


def test_files_that_are_all_gone_are_found_at_the_next_start() -> None:
    """The head file is left."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(1)])
    files.sync()
    files.close()
    filesystem.unlink(f"{FOLDER}/{names(filesystem)[0]}")
    opened(filesystem)
    assert not verified(filesystem).intact
    assert events(filesystem) == ["missing", "start"]


@pytest.mark.parametrize("seed", range(150))
def test_no_power_cut_or_crash_looks_like_tampering(seed: int) -> None:
    """What was appended and returned is there, and verification finds nothing."""
    random = Random(seed)
    filesystem = MemoryFileSystem()
    limits = AuditLimits(file_bytes=random.choice([1_000, 5_000]), retention_bytes=-1)
    written = 0
    for _ in range(4):
        files = opened(filesystem, limits)
        for _ in range(random.randrange(12)):
            files.append([event(written + n) for n in range(1, 4)])
            written += 3
        files.sync()
        if random.random() < 0.5:
            operations = random.randrange(1, 6)

            def fault(_operation: str, _path: str) -> OSError | None:
                nonlocal operations
                operations -= 1
                return OSError(errno.EIO, "cut off") if operations < 0 else None

            filesystem.fault = fault
            with contextlib.suppress(OSError):
                for _ in range(10):
                    files.append([event(0)])
                    files.sync()
        filesystem.crash(random if random.random() < 0.7 else None)
    opened(filesystem, limits)
    found = verified(filesystem)
    assert found.intact, (seed, found)
    lines = b"".join(content(filesystem, name) for name in names(filesystem))
    for number in range(1, written + 1):
        assert b'"User:%d"' % number in lines, (seed, number)


def test_two_brokers_in_one_folder_have_chains_of_their_own() -> None:
    """And the same broker twice is refused, with a remedy."""
    filesystem = MemoryFileSystem()
    one, two = opened(filesystem), opened(filesystem, broker=2)
    one.append([event(1)])
    two.append([event(2, broker=2)])
    assert (verified(filesystem).last, verified(filesystem, 2).last) == (2, 2)
    assert verified(filesystem).intact
    assert verified(filesystem, 2).intact
    with pytest.raises(OttlaError, match=r"in use by another broker: set audit\.log\.dir"):
        opened(filesystem)


def test_a_folder_that_cannot_be_written_is_refused_at_the_start() -> None:
    """With cause and remedy."""
    filesystem = MemoryFileSystem()
    filesystem.fault = lambda operation, _path: (
        OSError(errno.EACCES, "Permission denied") if operation == "open" else None
    )
    with pytest.raises(OttlaError, match=r"Permission denied; make room on its disk, let the"):
        opened(filesystem)


def writer_on(filesystem: MemoryFileSystem) -> AuditWriter:
    files = AuditFiles(filesystem, FOLDER, 1, LIMITS, stamp_of())
    writer = AuditWriter(files, stamp_of(), lambda: 0, inline=True)
    writer.start()
    return writer


def test_on_a_full_disk_lines_wait_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """Once there is room they are written in their order, and the chain is intact."""
    caplog.set_level(logging.INFO)
    filesystem = MemoryFileSystem()
    writer = writer_on(filesystem)
    writer.put(event(1))
    filesystem.capacity_bytes = len(content(filesystem, names(filesystem)[0])) + 300
    for number in range(2, 30):
        writer.put(event(number))
    (line,) = [r.message for r in caplog.records if r.levelno == logging.ERROR]
    assert line.startswith("the audit log cannot be written ([Errno 28] No space left on device: ")
    assert line.endswith("make room on its disk, or let the broker write there")
    filesystem.capacity_bytes = None
    writer.put(event(30))
    writer.close()
    assert events(filesystem) == ["start"] + ["denied"] * 30
    assert verified(filesystem).intact


def test_a_line_that_the_disk_refused_leaves_no_part_of_it() -> None:
    """Others need the room; and a broker that dies then does not find the disk full of it."""
    filesystem = MemoryFileSystem()
    writer = writer_on(filesystem)
    whole = content(filesystem, names(filesystem)[0])
    filesystem.capacity_bytes = len(whole) + len(content(filesystem, head_name(1))) + 100
    writer.put(event(1))
    assert content(filesystem, names(filesystem)[0]) == whole


def test_a_start_on_a_full_disk_is_refused_with_what_to_do() -> None:
    """Where lines cannot even begin, an administrator is at hand."""
    with pytest.raises(OttlaError, match=r"No space left on device.*; make room on its disk, let"):
        opened(MemoryFileSystem(capacity_bytes=10))


def test_lines_leave_the_last_part_of_the_disk_and_a_start_does_not_need_more() -> None:
    """What makes room needs it; a broker is started again with the line that says so."""
    filesystem = MemoryFileSystem(capacity_bytes=8 << 20)
    files = opened(filesystem)
    ballast = filesystem.open(f"{FOLDER}/ballast", create=True)
    ballast.append(bytes(filesystem.free_bytes(FOLDER) - (512 << 10)))
    with pytest.raises(OSError, match="No space left"):
        files.append([event(1)])
    files.close()
    files = opened(filesystem)
    assert events(filesystem) == ["start", "start"]
    filesystem.unlink(f"{FOLDER}/ballast")
    files.append([event(2)])
    assert events(filesystem) == ["start", "start", "denied"]


def test_what_does_not_fit_into_memory_is_counted_and_on_record() -> None:
    """Ten thousand lines wait; of the others there is one line."""
    filesystem = MemoryFileSystem()
    writer = writer_on(filesystem)
    filesystem.fault = lambda _operation, path: (
        OSError(errno.EIO, "broken", path) if "audit" in path else None
    )
    for number in range(10_500):
        writer.put(event(number))
    filesystem.fault = None
    writer.close()
    opened(filesystem).close()
    found = events(filesystem)
    assert found.count("denied") == 10_001
    assert found.count("lost") == 1
    assert b'"lines":499' in content(filesystem, names(filesystem)[-1])
    assert verified(filesystem).intact


def test_the_head_file_is_the_last_line_on_the_disk() -> None:
    """Number and hash, as text."""
    filesystem = MemoryFileSystem()
    files = opened(filesystem)
    files.append([event(1)])
    files.sync()
    assert parse_head(content(filesystem, head_name(1))) == files.head
    assert files.head == Head(2, verified(filesystem).head)
