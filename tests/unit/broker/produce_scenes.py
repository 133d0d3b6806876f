"""What producers send, well and ill formed, and what happens to a partition meanwhile."""

from collections.abc import Callable
from random import Random
from typing import Any

from ottla.base.crc32c import checksum
from ottla.base.errors import ErrorCode
from ottla.record.builder import BatchBuilder
from ottla.record.compression import Compression
from ottla.record.header import ATTRIBUTES_POSITION, CRC_POSITION
from tests.unit.broker.produce_world import NOW_MS, Ask, Scene, Step, World

Change = Callable[[World], Any]


def batch(*values: bytes, timestamp: int = NOW_MS, key: bytes | None = None, **more: Any) -> bytes:
    """A batch of records with these values."""
    builder = BatchBuilder(**more)
    for value in values:
        builder.append(timestamp, key, value)
    return bytes(builder.build())


def of(sequence: int, *values: bytes, epoch: int = 0, producer: int = 5, **more: Any) -> bytes:
    """A batch of an idempotent producer."""
    return batch(
        *(values or (b"x",)),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        **more,
    )


def patched(records: bytes, position: int, content: bytes, *, sealed: bool = True) -> bytes:
    """A batch with other bytes in it; `sealed` with a checksum that fits."""
    changed = bytearray(records)
    changed[position : position + len(content)] = content
    if sealed:
        crc = checksum(memoryview(changed)[ATTRIBUTES_POSITION:])
        changed[CRC_POSITION : CRC_POSITION + 4] = crc.to_bytes(4, "big")
    return bytes(changed)


ONE = batch(b"one")
_TWO = batch(b"two", b"three")
# Their lengths take one, two and three bytes in flexible versions.
_SIZES = [batch(b"s" * size) for size in (1, 40, 55, 60, 200, 16_300, 16_400)]


def _asks(*batches: bytes | None) -> list[Step]:
    return [Ask(each) for each in batches]


def _between_good(*steps: Step) -> list[Step]:
    """With a good request before and after each step."""
    return [each for step in steps for each in (Ask(ONE), step)] + [Ask(_TWO), Ask(ONE)]


BATCHES: dict[str, list[Step]] = {
    "sizes": _asks(*_SIZES),
    "good ones": _asks(ONE, _TWO, ONE, _TWO, _TWO, ONE, ONE),
    "a wrong checksum": _between_good(Ask(patched(ONE, len(ONE) - 2, b"!", sealed=False))),
    "wrong magic": _between_good(*(Ask(patched(ONE, 16, bytes([m]))) for m in (0, 1, 3))),
    "an unknown codec": _between_good(Ask(patched(ONE, 21, b"\0\7"))),
    "compressed": _between_good(
        *(Ask(batch(b"z" * 500, compression=c)) for c in (Compression.GZIP, Compression.ZSTD))
    ),
    "two batches": _between_good(Ask(ONE + _TWO)),
    "cut off": _between_good(Ask(ONE[:-3]), Ask(ONE[:40]), Ask(ONE[:3])),
    "bytes behind the batch": _between_good(Ask(ONE + b"??")),
    "bytes behind the records": _between_good(
        Ask(patched(ONE + b"??", 8, (len(ONE) + 2 - 12).to_bytes(4, "big")))
    ),
    "no batch": _between_good(Ask(b""), Ask(None)),
    "no records": _between_good(Ask(patched(ONE, 57, bytes(4)))),
    "a wrong count": _between_good(
        Ask(patched(_TWO, 57, b"\0\0\0\1")), Ask(patched(_TWO, 23, b"\0\0\0\7"))
    ),
    "an offset given": _between_good(Ask(patched(ONE, 0, (77).to_bytes(8, "big")))),
    "a leader epoch given": _between_good(Ask(patched(ONE, 12, (9).to_bytes(4, "big")))),
    "a time too late": _between_good(Ask(batch(b"x", timestamp=NOW_MS + 4_000_000))),
    "a greatest time before the first": _between_good(Ask(patched(ONE, 35, bytes(8)))),
    "no time": _between_good(Ask(batch(b"x", timestamp=-1)), Ask(batch(b"x", timestamp=0))),
    "time of append": _between_good(Ask(patched(ONE, 21, b"\0\x08"))),
    "transactional": _between_good(
        Ask(of(0, transactional=True)), Ask(of(0, transactional=True), transactional_id="t")
    ),
    "control": _between_good(Ask(patched(ONE, 21, b"\0\x20"))),
    "unknown attributes": _between_good(Ask(patched(ONE, 21, b"\x01\0"))),
}
PRODUCERS: dict[str, list[Step]] = {
    "in order": _asks(*(of(n) for n in range(1, 9))),
    "many records": _asks(of(1, b"a", b"b"), of(3, b"c"), of(4, b"d", b"e", b"f"), of(7)),
    "the same again": _asks(of(1), of(1), of(0), of(2), of(3), of(2), of(3), of(4)),
    "an old one again": _asks(*(of(n) for n in range(1, 9)), of(1), of(2), of(9)),
    "a gap": _asks(of(1), of(7), of(8), of(7), of(2)),
    "a stale epoch": _asks(
        of(0, epoch=3), of(1, epoch=3), of(2, epoch=2), of(2, epoch=3), of(0, epoch=1)
    ),
    "a newer epoch": _asks(of(0, epoch=1), of(5, epoch=2), of(0, epoch=2), of(1, epoch=2)),
    "unknown, not from the beginning": _asks(
        of(4, producer=6), of(5, producer=6), of(4, producer=6), of(5, producer=6)
    ),
    "several": _asks(
        of(0, producer=6), of(1), of(1, producer=6), ONE, of(2), of(2, producer=6), of(3)
    ),
    "a sequence that wraps around": _asks(
        *[of(2**31 - 2, producer=6)] * 2,
        of(2**31 - 1, producer=6),
        of(0, producer=6),
        of(1, producer=6),
    ),
    "half an identity": _asks(
        of(-1), of(1, epoch=-1), batch(b"x", producer_epoch=3), batch(b"x", base_sequence=3)
    ),
    "refused, and what follows it": _asks(
        of(1), patched(of(2), 60, b"!", sealed=False), of(3), of(2), of(3)
    ),
}
REQUESTS: dict[str, list[Step]] = {
    "an unknown topic": _between_good(Ask(ONE, topic="nowhere")),
    "an unknown partition": _between_good(Ask(ONE, partition=7), Ask(ONE, partition=-1)),
    "another topic": _between_good(Ask(ONE, topic="other"), Ask(_TWO, topic="other")),
    "two topics": [Ask(ONE), *[Ask(ONE, more=(("other", 0, ONE),))] * 3, Ask(_TWO), Ask(ONE)],
    "the same partition twice": [
        Ask(ONE),
        *[Ask(ONE, more=((None, 0, ONE),))] * 3,
        Ask(_TWO),
        Ask(ONE),
    ],
    "two topics, one unknown": [
        Ask(ONE),
        *[Ask(ONE, more=(("nowhere", 0, ONE),))] * 3,
        Ask(_TWO),
        Ask(ONE),
    ],
    "an internal topic": _between_good(
        *(Ask(ONE, topic="__consumer_offsets") for _ in range(2)),
        *(Ask(ONE, topic="__consumer_offsets", client_id="__admin_client") for _ in range(2)),
    ),
    "unknown acknowledgements": _between_good(Ask(ONE, acks=2)),
    "acknowledgements of all kinds": [
        Ask(each, acks=acks) for acks in (-1, 1, 0, 1, 0, -1, 0, -1) for each in (ONE, _TWO)
    ],
    "all versions": [
        Ask(each, version=version) for version in (3, 5, 8, 9, 12, 13) for each in (ONE, _TWO)
    ],
    "other words": _between_good(
        Ask(ONE, timeout_ms=7), Ask(ONE, client_id=None), Ask(ONE, client_id="tést")
    ),
    "within a transaction": _between_good(
        *(Ask(each, transactional_id="t") for each in (ONE, ONE, of(0), of(1), of(1), of(0))),
        *(Ask(of(0, transactional=True), transactional_id="t") for _ in range(2)),
    ),
    "cut off": [*_asks(ONE, ONE), Ask(ONE, spoil=lambda frame: frame[:-1]), Ask(ONE)],
    "a byte too many": [*_asks(ONE, ONE), Ask(ONE, spoil=lambda frame: frame + b"\0"), Ask(ONE)],
    "an unknown tag": [*_asks(ONE, ONE), Ask(ONE, spoil=lambda f: f[:-1] + b"\1\7\1x"), Ask(ONE)],
    "another API": [
        *_asks(ONE, ONE),
        Ask(ONE, spoil=lambda frame: b"\x7f" + frame[1:]),
        Ask(ONE),
    ],
}


def _close(world: World) -> None:
    world.partition.close_to_clients("it moved")


def _open(world: World) -> None:
    world.partition.open_to_clients()


def _lack_replicas(world: World) -> None:
    world.partition.under_min_isr = True


def _have_replicas(world: World) -> None:
    world.partition.under_min_isr = False


def _advance(world: World) -> None:
    world.partition.advance_log_start(2)


def _configure(**settings: Any) -> Change:
    return lambda world: world.configure(**settings)


def _fill_disk(world: World) -> None:
    filesystem = world.filesystem
    filesystem.capacity_bytes = 1 << 40
    room = filesystem.room()
    assert room is not None
    filesystem.capacity_bytes -= room - 200


def _empty_disk(world: World) -> None:
    world.filesystem.capacity_bytes = None


def _fail_waiting(world: World) -> None:
    world.partition.close_to_clients("it moved")
    world.partition.fail_acks(ErrorCode.NOT_LEADER_OR_FOLLOWER)


async def _delete(world: World) -> None:
    await world.delete(world.topic)


async def _recreate(world: World) -> None:
    _empty_disk(world)
    await world.delete(world.topic)
    await world.create(world.topic)


MORE = _asks(ONE, _TWO, ONE, _TWO)
_BIG = batch(b"b" * 900)
HAPPENINGS: dict[str, list[Step]] = {
    "it is led elsewhere": [*MORE, _close, *MORE, _open, *MORE],
    "replicas are missing": [*MORE, _lack_replicas, *MORE, _have_replicas, *MORE],
    "replicas are missing, of a producer": [
        *_asks(of(1), of(2)), _lack_replicas, *_asks(of(3), of(4)),
        _have_replicas, *_asks(of(4), of(3), of(4)),
    ],
    "a producer's batch was refused on another connection": [
        *_asks(of(1)), _lack_replicas, Ask(of(2), client_id="twin"), _have_replicas,
        *_asks(of(3), of(3)),
    ],
    "the log begins later": [*MORE, _advance, *MORE],
    "batches become too large": [Ask(_BIG), *MORE, _configure(max_message_bytes=500), Ask(_BIG),
                                 *MORE, _configure(max_message_bytes=1 << 20), Ask(_BIG)],
    "segments become too small": [Ask(_BIG), *MORE, _configure(segment_bytes=500), *MORE, Ask(_BIG),
                                  *MORE],
    "it is compressed here": [*MORE, _configure(compression_type="gzip"), *MORE],
    "time is told here": [*MORE, _configure(message_timestamp_type="LogAppendTime"), *MORE,
                            Ask(of(0, transactional=True)), *MORE],
    "times may differ less": [
        *MORE, _configure(message_timestamp_after_max_ms=10), *MORE,
        Ask(batch(b"x", timestamp=NOW_MS + 100_000)), Ask(batch(b"x", timestamp=NOW_MS - 9)),
    ],
    "old times are refused": [
        *MORE, _configure(message_timestamp_before_max_ms=1000),
        Ask(batch(b"x", timestamp=1)), *MORE,
    ],
    "it is compacted": [
        *MORE, _configure(cleanup_policy=frozenset({"compact"})),
        *MORE, Ask(batch(b"x", key=b"k")),
    ],
    "the disk is full": [*MORE, _fill_disk, Ask(_BIG), *MORE, _empty_disk, *MORE],
    "the disk is full, of a producer": [
        *_asks(of(1), of(2)), _fill_disk, *_asks(of(3, b"y" * 300), of(4)),
        _empty_disk, *_asks(of(4), of(3), of(4)),
    ],
    "it is deleted": [*MORE, _delete, *MORE],
    "it is made again": [*MORE, _recreate, *MORE],
    "nothing is flushed": [
        *MORE, World.hold_flushes, *(Ask(each, timeout_ms=30) for each in (ONE, _TWO, ONE)),
    ],
    "it moves while they wait": [*MORE, World.hold_flushes, *MORE, _fail_waiting, *MORE],
}  # fmt: skip
ALL = {
    **{f"batches: {name}": (ONE, steps) for name, steps in BATCHES.items()},
    **{f"producers: {name}": (of(0), steps) for name, steps in PRODUCERS.items()},
    **{f"requests: {name}": (ONE, steps) for name, steps in REQUESTS.items()},
    **{f"meanwhile: {name}": (ONE, steps) for name, steps in HAPPENINGS.items()},
}


# A run is one write, and where the disk has no room for it none of its batches is appended; the
# slow path appends those that fit. Both refuse the others with the same error.
_SEEN_IN_RUNS = frozenset(
    {"meanwhile: the disk is full", "meanwhile: the disk is full, of a producer"}
)


def scenes(version: int, acks: int, *, learnt: bool, together: bool) -> list[Scene]:
    """All of the above, in one version and with one kind of acknowledgement."""
    return [
        Scene(name, steps, learnt, version, acks, together and name not in _SEEN_IN_RUNS, first)
        for name, (first, steps) in ALL.items()
    ]


_ODD = [
    step
    for steps in (*BATCHES.values(), *REQUESTS.values(), *PRODUCERS.values())
    for step in steps
    if isinstance(step, Ask)
]


def drawn(random: Random, version: int, acks: int) -> Scene:
    """Requests and happenings in any order; most requests are of the usual kind."""
    together = random.random() < 0.7
    changes = [
        *(_close, _open, _lack_replicas, _have_replicas, _advance_if_it_may, _recreate),
        *(_configure(max_message_bytes=500), _configure(max_message_bytes=1 << 20)),
        *(_configure(segment_bytes=700), _configure(segment_bytes=1 << 30)),
        *(_configure(compression_type="lz4"), _configure(compression_type="producer")),
        *(_configure(message_timestamp_type=kind) for kind in ("LogAppendTime", "CreateTime")),
        _configure(index_interval_bytes=100),
        *(() if together else (_fill_disk, _empty_disk)),
    ]
    sequence = 0
    steps: list[Step] = []
    for _ in range(random.randrange(5, 40)):
        chance = random.random()
        if chance < 0.35:
            steps.append(Ask(random.choice([ONE, _TWO, *_SIZES[:5]])))
        elif chance < 0.75:
            values = [b"v" * random.randrange(90) for _ in range(random.randrange(1, 4))]
            steps.append(Ask(of(sequence, *values)))
            sequence += len(values)
        elif chance < 0.88:
            steps.append(random.choice(_ODD))
        else:
            steps.append(random.choice(changes))
    first = random.choice([ONE, of(0, producer=6)])
    return Scene("drawn", steps, random.random() < 0.8, version, acks, together, first)


def _advance_if_it_may(world: World) -> None:
    partition = world.partition
    if partition.closed is None and partition.high_watermark > partition.log_start_offset:
        partition.advance_log_start(partition.log_start_offset + 1)
