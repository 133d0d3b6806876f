"""Where each key of a log's dirty part stands last: 24 bytes a key, 16 of hash and 8 of offset.

Keys are known by their MD5 alone, as in Kafka: two keys of the same hash would be taken for one,
which nobody brings about but by intent, and then only between keys of his own. The table is made
of small ones that grow by themselves, so that growing never holds two copies of everything.
"""

from struct import Struct

try:
    # The interpreter's own: a third of the time that OpenSSL's takes for a key.
    from _md5 import md5  # type: ignore[import-not-found]  # typeshed has no stub
except ImportError:
    from hashlib import md5

ENTRY_BYTES = 24
_HASH_BYTES = 16
_TABLES = 256
_SLOTS_MIN = 32
# How full a small table gets before it grows, and how much then.
_LOAD = 0.85
_GROWTH = 1.5

_ENTRY = Struct("<16sq")
_OFFSET = Struct("<q")
_EMPTY = bytes(_HASH_BYTES)


class OffsetMap:
    """The last offset of each key that was put. Not more than `keys_max` keys are taken."""

    # Invariant: tables[n] holds the keys whose hash begins with byte n, each in the first free
    # slot from its own on; never full.

    __slots__ = ("_counts", "_limits", "_tables", "key_count", "keys_max", "latest_offset")

    def __init__(self, keys_max: int) -> None:
        self.keys_max = keys_max
        self.key_count = 0
        # Last offset that the map speaks of: what stands above it is not known here.
        self.latest_offset = -1
        self._tables = [bytearray(_SLOTS_MIN * ENTRY_BYTES) for _ in range(_TABLES)]
        self._counts = [0] * _TABLES
        self._limits = [int(_SLOTS_MIN * _LOAD)] * _TABLES

    @property
    def size_bytes(self) -> int:
        """Bytes of all tables."""
        return sum(map(len, self._tables))

    # Hot: once per record of the dirty part.
    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` stands at `offset`, above all before; False where there is no room."""
        digest = md5(key).digest()
        number = digest[0]
        table = self._tables[number]
        position = int.from_bytes(digest[8:], "little") % (len(table) // ENTRY_BYTES) * ENTRY_BYTES
        while not table.startswith(digest, position):
            if table.startswith(_EMPTY, position):
                return self._add(number, position, digest, offset)
            position += ENTRY_BYTES
            if position == len(table):
                position = 0
        _OFFSET.pack_into(table, position + _HASH_BYTES, offset)
        return True

    def _add(self, number: int, position: int, digest: bytes, offset: int) -> bool:
        if self.key_count >= self.keys_max:
            return False
        _ENTRY.pack_into(self._tables[number], position, digest, offset)
        self.key_count += 1
        self._counts[number] += 1
        if self._counts[number] > self._limits[number]:
            self._grow(number)
        return True

    # Hot: once per record that may go.
    def get(self, key: bytes) -> int:
        """The last offset of `key`, -1 where it was not put."""
        digest = md5(key).digest()
        table = self._tables[digest[0]]
        position = int.from_bytes(digest[8:], "little") % (len(table) // ENTRY_BYTES) * ENTRY_BYTES
        while not table.startswith(digest, position):
            if table.startswith(_EMPTY, position):
                return -1
            position += ENTRY_BYTES
            if position == len(table):
                position = 0
        (offset,) = _OFFSET.unpack_from(table, position + _HASH_BYTES)
        return int(offset)

    def _grow(self, number: int) -> None:
        old = self._tables[number]
        slots = int(len(old) // ENTRY_BYTES * _GROWTH) + 1
        table = self._tables[number] = bytearray(slots * ENTRY_BYTES)
        self._limits[number] = int(slots * _LOAD)
        for digest, offset in _ENTRY.iter_unpack(old):
            if digest == _EMPTY:
                continue
            position = int.from_bytes(digest[8:], "little") % slots * ENTRY_BYTES
            while not table.startswith(_EMPTY, position):
                position += ENTRY_BYTES
                if position == len(table):
                    position = 0
            _ENTRY.pack_into(table, position, digest, offset)
