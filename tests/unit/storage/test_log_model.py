"""The law of laws: whatever is done in whatever order, a log reads as a plain list would."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ottla.storage.disk.memory_filesystem import MemoryFileSystem
from ottla.storage.log.retention import delete_old_segments
from ottla.storage.log.truncation import truncate_to

from .logs import append, open_log, read_headers

SETTINGS = {
    "segment_bytes": 600,
    "index_interval_bytes": 150,
    "segment_ms": 50,
    "retention_ms": 200,
    "retention_bytes": -1,
}


class LogModel(RuleBasedStateMachine):
    """`batches` is the model: (first offset, last offset, timestamp) of all there should be."""

    @initialize()
    def start(self) -> None:
        self.filesystem = MemoryFileSystem()
        self.log = open_log(self.filesystem, **SETTINGS)
        self.batches: list[tuple[int, int, int]] = []
        self.start_offset = 0
        self.end_offset = 0
        self.now_ms = 1_000

    @rule(count=st.integers(1, 5), size=st.integers(0, 300), passed_ms=st.integers(0, 30))
    def appends(self, count: int, size: int, passed_ms: int) -> None:
        self.now_ms += passed_ms
        appended = append(
            self.log, count, payload=b"x" * size, timestamp=self.now_ms, now_ms=self.now_ms
        )
        assert appended.base_offset == self.end_offset
        self.batches.append((self.end_offset, self.end_offset + count - 1, self.now_ms))
        self.end_offset += count

    @rule()
    def rolls(self) -> None:
        self.log.roll(self.now_ms)
        assert self.log.segments.active.size == 0

    @rule(checkpoint=st.booleans())
    def flushes(self, checkpoint: bool) -> None:
        self.log.flush(checkpoint=checkpoint)
        assert self.log.flush_state.recovery_point == self.end_offset

    @rule(data=st.data())
    def truncates(self, data: st.DataObject) -> None:
        places = [first for first, _, _ in self.batches if first >= self.start_offset]
        offset = data.draw(st.sampled_from([*places, self.end_offset]))
        truncate_to(self.log, offset, self.now_ms)
        self.batches = [one for one in self.batches if one[0] < offset]
        self.end_offset = offset

    @rule(data=st.data())
    def deletes_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start_offset, self.end_offset))
        self.log.advance_log_start(offset)
        self.start_offset = offset

    @rule(passed_ms=st.integers(0, 300))
    def applies_retention(self, passed_ms: int) -> None:
        self.now_ms += passed_ms
        for deletion in delete_old_segments(self.log, self.now_ms, self.end_offset):
            deletion.run()
        start = self.log.log_start_offset
        assert start >= self.start_offset
        gone = [one for one in self.batches if self.start_offset <= one[1] < start]
        assert all(self.now_ms - timestamp > 200 for _, _, timestamp in gone)
        self.start_offset = start

    @rule(clean=st.booleans())
    def reopens(self, clean: bool) -> None:
        recovery_point = self.log.flush_state.recovery_point
        if clean:
            self.log.close(clean=True)
            recovery_point = self.end_offset
        self.filesystem.crash()
        self.log = open_log(
            self.filesystem,
            recovery_point=recovery_point,
            log_start_offset=self.start_offset,
            clean=clean,
            **SETTINGS,
        )

    @invariant()
    def reads_as_the_model(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start_offset, self.end_offset)
        visible = [(a, b) for a, b, _ in self.batches if b >= self.start_offset]
        found: list[tuple[int, int]] = []
        offset = self.start_offset
        while headers := read_headers(log, offset, 400):
            found += [(header.base_offset, header.last_offset) for header in headers]
            offset = found[-1][1] + 1
        assert found == visible
        assert log.size_bytes >= sum(1 for _ in visible) * 61

    @invariant()
    def finds_every_offset(self) -> None:
        for first, last, _ in self.batches[-6:]:
            for offset in range(max(first, self.start_offset), last + 1):
                assert read_headers(self.log, offset, 1)[0].base_offset == first


LogModel.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLogModel = LogModel.TestCase
