"""Compaction of the records in one batch; compiled by mypyc like the codec.

A `KeyMap` maps each key of a log's dirty part to its last offset: 24 bytes a key, 16 of hash and 8
of offset. Keys are identified by their MD5 alone, as in Kafka, so two keys with the same hash would
be treated as one. Only a producer that constructs such keys on purpose can cause that. The map
consists of small tables that grow one by one, so that growing never holds two copies of everything.
"""

from typing import Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i64

from ottla.record.codec import check_base_offset, greatest_delta, least_delta, read_varlong
from ottla.record.compression import CorruptBatch

try:
    # The interpreter's own MD5 takes a third of OpenSSL's time per key.
    from _md5 import md5  # type: ignore[import-not-found]  # typeshed has no stub
except ImportError:
    from hashlib import md5

ENTRY_BYTES: Final = 24
_TABLES: Final = 64
_TABLES_MASK: Final = 63
_SLOTS_MIN: Final = 64
# Sixty-two bits: the largest literal of compiled code.
_POSITIVE: Final = 0x3FFFFFFFFFFFFFFF


class KeyMap:
    """The last offset of each key that was put, for at most `keys_max` keys."""

    # Invariant: a slot is three numbers, two of hash and the offset + 1, 0 if it is free. A key is
    # in the first slot that was free at its insertion, searched from the slot of its hash on; no
    # table is ever full.

    __slots__ = ("_counts", "_tables", "key_count", "keys_max", "latest_offset")

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self.key_count = 0
        # The last offset whose key was put; the map covers no later ones.
        self.latest_offset = -1
        self._tables: list[vec[i64]] = [vec[i64]([0] * (3 * _SLOTS_MIN)) for _ in range(_TABLES)]
        self._counts: list[int] = [0] * _TABLES

    @property
    def size_bytes(self) -> int:
        """Bytes of all tables."""
        size = 0
        for table in self._tables:
            size += 8 * len(table)
        return size

    # Hot: once per record of the dirty part.
    def put(self, key: bytes, offset: i64) -> bool:
        """Set the last offset of `key`; return False if the map is full.

        `offset` must be above all earlier ones.
        """
        digest: bytes = md5(key).digest()
        low: i64 = read_i64_le(digest, 0)
        high: i64 = read_i64_le(digest, 8)
        number: i64 = low & _TABLES_MASK
        table: vec[i64] = self._tables[number]
        size: i64 = len(table)
        place: i64 = (high & _POSITIVE) % (size // 3) * 3
        while table[place + 2] != 0:
            if table[place] == low and table[place + 1] == high:
                table[place + 2] = offset + 1
                return True
            place += 3
            if place == size:
                place = 0
        if self.key_count >= self.keys_max:
            return False
        table[place] = low
        table[place + 1] = high
        table[place + 2] = offset + 1
        self.key_count += 1
        count = self._counts[number] + 1
        self._counts[number] = count
        # Up to six sevenths full.
        if count * 21 > size * 6:
            self._grow(number)
        return True

    # Hot: once per record that may be removed.
    def get(self, key: bytes) -> i64:
        """Return the last offset of `key`, -1 if it was not put."""
        digest: bytes = md5(key).digest()
        low: i64 = read_i64_le(digest, 0)
        high: i64 = read_i64_le(digest, 8)
        table: vec[i64] = self._tables[low & _TABLES_MASK]
        size: i64 = len(table)
        place: i64 = (high & _POSITIVE) % (size // 3) * 3
        while table[place + 2] != 0:
            if table[place] == low and table[place + 1] == high:
                return table[place + 2] - 1
            place += 3
            if place == size:
                place = 0
        return -1

    def _grow(self, number: i64) -> None:
        old: vec[i64] = self._tables[number]
        old_size: i64 = len(old)
        slots: i64 = old_size // 3 * 4 // 3
        size: i64 = slots * 3
        table: vec[i64] = vec[i64]([0] * size)
        source: i64 = 0
        while source < old_size:
            if old[source + 2] != 0:
                place: i64 = (old[source + 1] & _POSITIVE) % slots * 3
                while table[place + 2] != 0:
                    place += 3
                    if place == size:
                        place = 0
                table[place] = old[source]
                table[place + 1] = old[source + 1]
                table[place + 2] = old[source + 2]
            source += 3
        self._tables[number] = table


class Sifted:
    """The records of a batch that stay after compaction.

    `runs` has the positions in the section where runs of kept records begin and end, alternately.
    `max_timestamp` is their greatest timestamp in ms, -1 for none. `tombstones` says whether some
    of them are tombstones.
    """

    __slots__ = ("kept", "max_timestamp", "runs", "tombstones", "tombstones_dropped")

    def __init__(self) -> None:
        self.runs: list[int] = []
        self.kept = 0
        self.max_timestamp = -1
        self.tombstones = False
        self.tombstones_dropped = 0


def index_keys(
    section: bytes, record_count: int, base_offset: int, offset_min: int, keys: KeyMap
) -> bool:
    """Put the keys of an uncompressed section's records from `offset_min` on into the map.

    Return False if there is no room for all. Raises CorruptBatch.
    """
    check_base_offset(base_offset)
    try:
        return _index(section, record_count, base_offset, offset_min, keys)
    except IndexError as error:
        raise CorruptBatch("the records section ends within a record") from error


# Hot: see `python -m bench compaction`.
def _index(
    section: bytes, record_count: i64, base_offset: i64, offset_min: i64, keys: KeyMap
) -> bool:
    end: i64 = len(section)
    position: i64 = 0
    index: i64 = 0
    while index < record_count:
        index += 1
        size, position = read_varlong(section, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"a record of {size} bytes does not fit its batch")
        stop: i64 = position + size
        _, position = read_varlong(section, position + 1)
        delta, position = read_varlong(section, position)
        size, position = read_varlong(section, position)
        if size > stop - position:
            raise CorruptBatch(f"a key of {size} bytes does not fit its record")
        offset: i64 = base_offset + delta
        if (
            size >= 0
            and offset >= offset_min
            and not keys.put(section[position : position + size], offset)
        ):
            return False
        position = stop
    return True


def sift(
    section: bytes,
    record_count: int,
    base_offset: int,
    base_timestamp: int,
    keys: KeyMap,
    *,
    tombstones_stay: bool,
) -> Sifted:
    """Find the records of an uncompressed section that stay: the latest one of each key.

    Records after the map's last offset stay, too. Before it, records without a key are removed.
    Raises CorruptBatch.
    """
    check_base_offset(base_offset)
    try:
        return _sift(section, record_count, base_offset, base_timestamp, keys, tombstones_stay)
    except IndexError as error:
        raise CorruptBatch("the records section ends within a record") from error


# Hot: see `python -m bench compaction`.
def _sift(  # noqa: C901  # One loop without calls is what makes it fast.
    section: bytes,
    record_count: i64,
    base_offset: i64,
    base_timestamp: i64,
    keys: KeyMap,
    tombstones_stay: bool,
) -> Sifted:
    sifted = Sifted()
    runs = sifted.runs
    latest: i64 = keys.latest_offset
    least: i64 = least_delta(base_timestamp)
    greatest: i64 = greatest_delta(base_timestamp)
    max_timestamp: i64 = -1
    end: i64 = len(section)
    position: i64 = 0
    run_start: i64 = -1
    kept: i64 = 0
    index: i64 = 0
    while index < record_count:
        index += 1
        start: i64 = position
        size, position = read_varlong(section, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"a record of {size} bytes does not fit its batch")
        stop: i64 = position + size
        time, position = read_varlong(section, position + 1)
        if time < least or time > greatest:
            raise CorruptBatch("a record's timestamp leaves 64 bits")
        delta, position = read_varlong(section, position)
        size, position = read_varlong(section, position)
        if size > stop - position:
            raise CorruptBatch(f"a key of {size} bytes does not fit its record")
        offset: i64 = base_offset + delta
        stays = offset > latest
        if not stays and size >= 0:
            stays = offset >= keys.get(section[position : position + size])
        if stays:
            if size > 0:
                position += size
            size, position = read_varlong(section, position)
            if size < 0:
                if tombstones_stay or offset > latest:
                    sifted.tombstones = True
                else:
                    stays = False
                    sifted.tombstones_dropped += 1
        if stays:
            kept += 1
            if base_timestamp + time > max_timestamp:
                max_timestamp = base_timestamp + time
            if run_start < 0:
                run_start = start
        elif run_start >= 0:
            runs.append(run_start)
            runs.append(start)
            run_start = -1
        position = stop
    if run_start >= 0:
        runs.append(run_start)
        runs.append(position)
    sifted.kept = kept
    sifted.max_timestamp = max_timestamp
    return sifted
