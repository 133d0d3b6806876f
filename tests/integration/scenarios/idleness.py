"""Scripts of partitions to which nothing is written for longer than a follower may lag."""

from verify.walk.messages import WriteIsr
from verify.walk.node import LAG_MS_MAX
from verify.walk.stage import Stage
from verify.walk.world import Build

SILENCE_MS = 25
IDLE_MS = 10 * LAG_MS_MAX
ALL = {1, 2, 3}


def _idle(build: Build, *, min_isr: int = 2, silence_ms: int | None = None) -> Stage:
    """Three hold the same record, and nothing was written for a long time."""
    stage = Stage(build, min_isr=min_isr, silence_ms=silence_ms)
    stage.produce(1)
    stage.catch_up(2, 3)
    stage.wait(IDLE_MS)
    stage.look(1)
    return stage


def _expect_whole(stage: Stage) -> None:
    stage.expect(not stage.has(WriteIsr), "no change of the ISR is proposed")
    stage.expect(set(stage.state.isr) == ALL, f"all are in sync: {stage.state}")


def first_record_after_a_quiet_time(build: Build) -> None:
    """Followers that stand still for a moment when it is written stay, and hold it then."""
    for min_isr in (2, 1):
        stage = _idle(build, min_isr=min_isr)
        stage.produce(1)
        stage.look(1)
        stage.wait(LAG_MS_MAX - 10)
        stage.look(1)
        _expect_whole(stage)
        stage.expect(stage.committed == 1, "the leader alone commits nothing")
        stage.catch_up(2, 3)
        stage.expect(stage.committed == 2, "the record is on all three")
        _expect_whole(stage)
        stage.heal(1, 2, 3)


def sent_again_before_a_quiet_time(build: Build) -> None:
    """A batch that the log has is no record that followers lack: the next one is the first."""
    stage = _idle(build)
    stage.node(1).repeat()
    stage.wait(IDLE_MS)
    stage.produce(1)
    stage.look(1)
    _expect_whole(stage)
    stage.wait(LAG_MS_MAX - 1)
    stage.look(1)
    _expect_whole(stage)
    stage.wait(1)
    stage.look(1)
    stage.expect(stage.has(WriteIsr), "both are late by that record")
    stage.catch_up(2, 3)
    stage.settle_isr()
    stage.heal(1, 2, 3)


def silence_after_a_quiet_time(build: Build) -> None:
    """A follower that has nothing to fetch is not silent; with something to fetch it soon is."""
    stage = _idle(build, min_isr=1, silence_ms=SILENCE_MS)
    stage.produce(1)
    stage.look(1)
    stage.wait(SILENCE_MS - 1)
    stage.look(1)
    _expect_whole(stage)
    stage.pull(2)
    stage.pull(2)
    stage.look(1)
    stage.settle_isr()
    stage.expect(set(stage.state.isr) == {1, 2}, f"3 was silent: {stage.state}")
    stage.expect(stage.committed == 2, "the record is on all in sync")
    stage.heal(1, 2, 3)


def stuck_while_records_come(build: Build) -> None:
    """Records that are written meanwhile give a follower that lacks earlier ones no more time."""
    stage = _idle(build)
    for _ in range(8):
        stage.wait(8)
        stage.produce(1)
        stage.pull(2, 2)
        stage.look(1)
    stage.settle_isr()
    stage.expect(set(stage.state.isr) == {1, 2}, f"3 is late: {stage.state}")
    stage.heal(1, 2, 3)


def joins_below_the_end(build: Build) -> None:
    """Who has reached the high watermark joins, and has the full time from there."""
    stage = Stage(build, min_isr=1)
    stage.produce(1)
    stage.catch_up(2)
    stage.lag(1)
    stage.settle_isr()
    stage.expect(set(stage.state.isr) == {1, 2}, f"3 is late: {stage.state}")
    stage.produce(1, 4)
    stage.pull(3)
    stage.pull(3)
    stage.settle_isr()
    stage.expect(set(stage.state.isr) == ALL, f"3 has reached what is committed: {stage.state}")
    stage.look(1)
    _expect_whole(stage)
    stage.heal(1, 2, 3)


def comes_back_with_less(build: Build) -> None:
    """A follower that lost records while nothing was written has the full time to fetch them."""
    stage = _idle(build)
    stage.produce(1)
    stage.catch_up(2, 3)
    stage.wait(IDLE_MS)
    for broker in (1, 2):
        stage.node(broker).sync()
    stage.node(3).log.synced_end = 1
    stage.world.cut_power(3, 1)
    stage.world.restart(3)
    stage.inform(1, 2, 3)
    stage.arrive(stage.ask(3))
    stage.look(1)
    _expect_whole(stage)
    stage.plan(1, 2, 3)
    stage.heal(1, 2, 3)


SCRIPTS = {
    first_record_after_a_quiet_time: ("idle_time_counts", "idle_time_is_silence"),
    sent_again_before_a_quiet_time: ("repeats_are_growth",),
    silence_after_a_quiet_time: ("idle_time_counts", "idle_time_is_silence"),
    stuck_while_records_come: ("every_append_renews",),
    joins_below_the_end: ("joins_without_time",),
    comes_back_with_less: ("forgets_the_time",),
}
