"""Any course of a share partition, its state written and read back like a coordinator's."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.errors import OttlaError
from ottla.share.deliveries import Acknowledged, Dead, DeliveryLimits, Found
from ottla.share.partition import SharePartition
from ottla.share.states import StateBatch, overlay

LIMIT = 2
MEMBERS = ("a", "b")
# A log of batches with a hole, a marker and an end.
LOG = [
    Found(0, 4),
    Found(5, 5, readable=False),
    Found(6, 11),
    Found(14, 14),
    Found(15, 22),
    Found(23, 23, readable=False),
    Found(24, 31),
]
READABLE = frozenset(o for each in LOG if each.readable for o in range(each.first, each.last + 1))


@dataclass
class World:
    """One partition of one group; what each member has, and what was promised to whom."""

    now_ms: int = 0
    written_start: int = 0
    written: tuple[StateBatch, ...] = ()
    partition: SharePartition = field(init=False)
    held: dict[str, set[int]] = field(default_factory=lambda: {each: set() for each in MEMBERS})
    # Accepted, and the member was told so.
    accepted: set[int] = field(default_factory=set)
    # Rejected, or given out as often as may be.
    given_up: set[int] = field(default_factory=set)
    # Of these a member said that there are none.
    gaps: set[int] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)
    # Whether there is a dead-letter topic; which letters are to be written, and which are.
    letters: bool = False
    waiting: list[Dead] = field(default_factory=list)
    posted: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.begin()

    def do(self, step: tuple) -> None:  # type: ignore[type-arg]
        """One step of a course, by name."""
        if step[0] == "acquire":
            self.acquire(step[1], step[2], strict=step[3])
        else:
            getattr(self, step[0])(*step[1:])

    def begin(self) -> None:
        limits = DeliveryLimits(
            lock_ms=100, delivery_count=LIMIT, records=12, dead_letters=self.letters
        )
        self.partition = SharePartition(limits, self.written_start, self.written)
        self.waiting = self.partition.archiving()

    def acquire(self, member: str, most: int, *, strict: bool) -> None:
        offset = self.partition.next_offset()
        if offset is None:
            return
        found = [each for each in LOG if each.last >= offset]
        given_now = self.partition.acquire(member, offset, found, most, self.now_ms, strict=strict)
        for each in given_now:
            for record in range(each.first, each.last + 1):
                assert record in READABLE, "what holds nothing was given out"
                assert record not in self.accepted, "an accepted record was given out again"
                assert not any(record in held for held in self.held.values()), "two have it"
                assert 1 <= each.delivery_count <= LIMIT
                self.held[member].add(record)
                self.counts[record] = self.counts.get(record, 0) + 1
        assert not strict or sum(e.last - e.first + 1 for e in given_now) <= most

    def acknowledge_held(self, member: str, pick: int, size: int, kind: int) -> None:
        """Acknowledge up to `size` neighbours of what the member believes to have."""
        held = sorted(self.held[member])
        if held:
            first = held[pick % len(held)]
            while size > 1 and not set(range(first, first + size)) <= set(held):
                size -= 1
            self.acknowledge(member, first, size, kind)

    def acknowledge(self, member: str, first: int, size: int, kind: int) -> None:
        last = first + size - 1
        batch = Acknowledged(first, last, [kind])
        try:
            self.partition.acknowledge(member, [batch], self.now_ms)
        except OttlaError:
            return
        mine = self.held[member] & set(range(first, last + 1))
        if kind == 4:
            return
        self.held[member] -= mine
        if kind == 1:
            self.accepted |= mine
        if kind in (0, 3):
            self.given_up |= mine
        if kind == 0:
            self.gaps |= mine
        # Nobody is told before it is written.
        self.write()

    def write(self) -> None:
        changes = self.partition.changes()
        self.written_start = changes.start_offset
        self.written = overlay(self.written, changes.batches, changes.start_offset)
        self.waiting += changes.letters

    def post(self) -> None:
        """The next letter is written."""
        if self.waiting:
            dead = self.waiting.pop(0)
            self.posted |= set(range(dead.first, dead.last + 1))
            self.partition.archive(dead.first, dead.last)

    def expire(self, ms: int) -> None:
        self.now_ms += ms
        if self.partition.expire(self.now_ms):
            self.release()

    def leave(self, member: str) -> None:
        self.partition.release_all(member)
        self.release()

    def release(self) -> None:
        """Drop from `held` what the partition says nobody has any more."""
        acquired = {
            offset
            for run in self.partition.runs()
            if run.state == 1
            for offset in range(run.first, run.last + 1)
        }
        for held in self.held.values():
            held &= acquired

    def crash(self) -> None:
        """The leader is lost: only what was written is left."""
        self.begin()
        for held in self.held.values():
            held.clear()

    def check(self) -> None:
        """No record is passed by that was neither accepted nor given up."""
        for dead in self.partition.dead:
            assert dead.rejected or dead.delivery_count == LIMIT
            self.given_up |= set(range(dead.first, dead.last + 1))
        final = {
            offset
            for run in self.partition.runs()
            if run.state.is_final
            for offset in range(run.first, run.last + 1)
        }
        for record in READABLE:
            if record < self.partition.start_offset or record in final:
                assert record in self.accepted or record in self.given_up, "a record was lost"
                if self.letters and record not in self.accepted | self.gaps:
                    assert record in self.posted, "a record left no letter"


MEMBER = st.sampled_from(MEMBERS)
STEPS = st.one_of(
    st.tuples(st.just("acquire"), MEMBER, st.integers(1, 9), st.booleans()),
    st.tuples(
        st.just("acknowledge"), MEMBER, st.integers(0, 31), st.integers(1, 9), st.integers(0, 4)
    ),
    st.tuples(
        st.just("acknowledge_held"),
        MEMBER,
        st.integers(0, 31),
        st.integers(1, 9),
        st.sampled_from((1, 1, 2, 2, 3, 4)),
    ),
    st.tuples(st.just("expire"), st.integers(0, 120)),
    st.tuples(st.just("leave"), MEMBER),
    st.tuples(st.just("write")),
    st.tuples(st.just("post")),
    st.tuples(st.just("crash")),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(STEPS, max_size=60), st.booleans())
def test_nothing_accepted_comes_again_and_nothing_else_is_lost(
    steps: list[tuple],  # type: ignore[type-arg]
    letters: bool,
) -> None:
    """Whatever members do and wherever the leader is lost, with counts within the limit.

    With a dead-letter topic each record that nobody accepted has left a letter by then.
    """
    world = World(letters=letters)
    for step in steps:
        world.do(step)
        world.check()


@settings(max_examples=100, deadline=None)
@given(st.lists(STEPS, max_size=30), st.booleans())
def test_every_record_is_done_with_in_the_end(
    steps: list[tuple],  # type: ignore[type-arg]
    letters: bool,
) -> None:
    """After any course, a member that accepts what it gets comes to the end of the log."""
    world = World(letters=letters)
    for step in steps:
        world.do(step)
    world.expire(1_000)
    for _ in range(40):
        world.acquire("a", 5, strict=False)
        for record in sorted(world.held["a"]):
            world.acknowledge("a", record, 1, 1)
        world.write()
        while world.waiting:
            world.post()
    assert world.partition.start_offset == 32
