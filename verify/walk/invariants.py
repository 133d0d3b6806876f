"""What must hold after each step (RELIABILITY: candidates complete, logs match, reads repeat)."""

from typing import TYPE_CHECKING

from ottla.base.ids import BrokerId
from ottla.replica.leader import Leader
from verify.walk.log import HOLE, Record
from verify.walk.violation import Violation

if TYPE_CHECKING:
    from verify.walk.node import WalkNode
    from verify.walk.world import WalkWorld


class Committed:
    """All records ever committed by any leader, by offset, and the checks against them."""

    def __init__(self, world: "WalkWorld") -> None:
        self.world = world
        # Invariant: only grows; what stands at an offset never changes.
        self.records: list[Record] = []
        # The newest leader epoch in which a consumer read the end, and that end.
        self._shown_epoch = -1
        self._shown_end = 0

    def commit(self, node: "WalkNode", high_watermark: int) -> None:
        """A leader's high watermark rose: requests with acks=all are answered."""
        log = node.log
        if high_watermark > log.log_end_offset:
            raise Violation(f"high watermark {high_watermark} beyond the end of {node.id}'s log")
        records = self.records
        before = len(records)
        if high_watermark > before:
            records.extend(log.records[before:high_watermark])
            self._check_last(node, before)
            self.on_candidates()
        else:
            self._check_last(node, high_watermark)

    def show(self, node: "WalkNode", high_watermark: int) -> None:
        """A follower's high watermark rose: consumers near it may read up to there."""
        if high_watermark > min(len(self.records), node.log.log_end_offset):
            raise Violation(f"follower {node.id} shows offset {high_watermark - 1}, not committed")
        self._check_last(node, high_watermark)

    def show_end(self, node: "WalkNode") -> None:
        """A consumer asks a leader for the latest offset (R-10); it trusts no older term."""
        role = node.role
        if not isinstance(role, Leader) or role.term.leader_epoch < self._shown_epoch:
            return
        end = role.term.latest_offset()
        if end is None:
            self.world.seen["end held back"] += 1
            return
        if end < self._shown_end:
            raise Violation(f"the end went back from {self._shown_end} to {end}")
        self._shown_epoch, self._shown_end = role.term.leader_epoch, end

    def check_end(self, node: "WalkNode") -> None:
        """Epochs in a log never go back."""
        records = node.log.records
        if len(records) > 1 and records[-2][0] > records[-1][0]:
            raise Violation(f"epochs go back in the log of {node.id}")

    # Hot: after each step that may change the candidates or their logs.
    def on_candidates(self) -> None:
        """Every broker that may be elected holds every committed record."""
        records = self.records
        if not records:
            return
        last = len(records) - 1
        world = self.world
        state = world.store.state
        for broker in state.isr + state.elr:
            node = world.nodes[broker]
            if not world.group_commit and (node.lossy or broker in world.store.doubtful):
                continue  # The controller knows that it must not elect it, or will before it can.
            log = node.log
            if log.log_end_offset <= last:
                raise Violation(
                    f"candidate {broker} lacks committed offset {log.log_end_offset} of {last}"
                )
            if log.records[last] != records[last] and log.log_start_offset <= last:
                raise Violation(f"candidate {broker} has another record at {last}")

    def check_all(self) -> None:
        """Everything, record by record."""
        self.on_candidates()
        state = self.world.store.state
        for broker, node in self.world.nodes.items():
            if broker in state.replicas:
                self._check_prefix(broker, node)

    def _check_prefix(self, broker: BrokerId, node: "WalkNode") -> None:
        log = node.log
        start = log.log_start_offset
        end = min(node.high_watermark, len(self.records))
        if log.records[start:end] != self.records[start:end]:
            raise Violation(f"broker {broker} has other records than were committed")
        last = -1
        for epoch, _ in log.records[start:]:
            if epoch < last:
                raise Violation(f"epochs go back in the log of {broker}")
            last = epoch

    def _check_last(self, node: "WalkNode", end: int) -> None:
        """By log matching, the last record stands for all before it."""
        if end == 0 or end > len(self.records):
            return
        own = node.log.records[end - 1]
        if own not in (HOLE, self.records[end - 1]):
            raise Violation(f"broker {node.id} shows another record at {end - 1} than was acked")
