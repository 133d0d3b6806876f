"""The files of a partition's log in a log directory of Ottla or Apache Kafka, opened to be read.

A broker may write and delete them meanwhile. What is below the high watermark does not change but
by compaction and deletion, and an open file stays as it was.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from uuid import UUID

from ottla.base.system import pread
from ottla.record.header import BatchHeader, read_header
from ottla.record.reader import Survey, survey
from ottla.storage.directory.names import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    PARTITION_METADATA,
    parse_segment_file,
    segment_file,
)
from ottla.storage.directory.partition_metadata import decode

_ENTRY = Struct(">ii")
# Read at once; a larger batch is read whole.
CHUNK_BYTES = 8 << 20
# Read at once where a place is looked for; the index has one each 4 KiB.
_LOOK_BYTES = 64 << 10


def find_folder(log_dirs: Sequence[str], topic: str, partition: int, topic_id: str) -> Path | None:
    """The partition's folder in one of the directories, if it holds the topic with that id."""
    for log_dir in log_dirs:
        folder = Path(log_dir) / f"{topic}-{partition}"
        try:
            if decode((folder / PARTITION_METADATA).read_bytes()) == UUID(topic_id):
                return folder
        except (OSError, ValueError):
            continue
    return None


def chunks(folder: Path, position: int, end: int) -> Iterator[tuple[bytes, Survey]]:
    """Yield whole batches from the one that holds `position` on, those that begin below `end`.

    A piece may hold more than its survey says, before them and behind. Ends at the end of the log,
    at a batch that is not whole, and at a gap between files. Raises OSError, and CorruptBatch at a
    header that is damaged.
    """
    while True:
        base = _segment_of(folder, position)
        if base is None:
            return
        ended = True
        for buffer, found in _segment_chunks(folder, base, position, end, CHUNK_BYTES):
            position = read_header(buffer, found.last).last_offset + 1
            ended = False
            yield buffer, found
        following = _segment_of(folder, position)
        if position >= end or (ended and (following is None or following == base)):
            return


def last_header(folder: Path, end: int) -> BatchHeader | None:
    """The header of the batch that has the offset before `end`; None where there is none.

    Raises as `chunks` does.
    """
    base = _segment_of(folder, end - 1)
    if base is None:
        return None
    for buffer, found in _segment_chunks(folder, base, end - 1, end, _LOOK_BYTES):
        return read_header(buffer, found.last)
    return None


def _segment_of(folder: Path, position: int) -> int | None:
    """The base offset of the segment that `position` is in, or the first one behind it."""
    names = (parse_segment_file(path.name) for path in folder.iterdir())
    bases = sorted(name[0] for name in names if name is not None and name[1] == LOG_SUFFIX)
    if not bases:
        return None
    return bases[max(0, bisect_right(bases, position) - 1)]


def _segment_chunks(
    folder: Path, base: int, position: int, end: int, chunk_bytes: int
) -> Iterator[tuple[bytes, Survey]]:
    with (folder / segment_file(base, LOG_SUFFIX)).open("rb", buffering=0) as file:
        place, wanted = _place_before(folder, base, position), chunk_bytes
        # Hot: each piece is read from a batch's begin on, so that nothing is joined or copied.
        while buffer := pread(file.fileno(), wanted, place):
            found = survey(buffer, position, end)
            if found.start < found.end:
                yield buffer, found
            if found.is_cut:
                return
            if found.end == 0:
                if len(buffer) < wanted:
                    return  # Not whole: it is being written, or was cut by a crash.
                wanted = read_header(buffer).size
                continue
            place += found.end
            wanted = chunk_bytes


def _place_before(folder: Path, base: int, position: int) -> int:
    """A place in the segment where a batch begins that is not behind `position`.

    By the offset index, whose entries count as far as they rise: Kafka fills up the file of the
    active segment with zeros.
    """
    try:
        encoded = (folder / segment_file(base, OFFSET_INDEX_SUFFIX)).read_bytes()
    except OSError:
        return 0
    entries = _ENTRY.iter_unpack(encoded[: len(encoded) - len(encoded) % _ENTRY.size])
    last, place = -1, 0
    for relative, entry_place in entries:
        if relative <= last or base + relative > position:
            break
        last, place = relative, entry_place
    return place
