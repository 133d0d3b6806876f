"""Scripts of who is in sync, and what that commits: S7 to S12, S15, S18, S20, S32."""

from verify.walk.log import WalkLog
from verify.walk.messages import FetchedRecords, FollowerFetch, State, WriteIsr, WriteOutcome
from verify.walk.stage import Stage
from verify.walk.world import Build

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId
from ottla.replica.effects import AdvanceHighWatermark


def p15_high_watermark_travels(build: Build) -> None:
    """000 section 8.1.3 in motion: nobody shows what it does not hold, nor what is not on all."""
    stage = Stage(build)
    stage.produce(1, 5)
    stage.expect(stage.committed == 0, "the leader alone commits nothing")
    stage.pull(2)
    stage.pull(3)
    stage.pull(3)
    stage.expect(stage.committed == 0, "what only one has fetched again is not committed")
    stage.pull(2)
    stage.expect(stage.committed == 3, "the least end of all")
    stage.expect(stage.node(3).high_watermark == 0, "who fetched before that does not know")
    stage.catch_up(2, 3)
    stage.elect(2, 1, 2, 3)
    stage.produce(2, 9)
    stage.catch_up(3)
    stage.pull(1)
    stage.catch_up(1)
    stage.expect(stage.committed == 14, "all is on all")


def s7_zombie_leader(build: Build) -> None:
    """A leader cut off from the store and the others acknowledges nothing, and converges."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.node(1).doubt_session()
    stage.world.now_ms += 1000
    stage.leave(1, 2, 3)
    zombie = stage.leader(1)
    stage.produce(1, 3)
    now_ms = stage.world.now_ms
    stage.expect(zombie.term.high_watermark == 2, "the zombie acknowledges nothing")
    stage.expect(not zombie.term.is_certain(now_ms), "the zombie takes nothing any more")
    stage.produce(2, 2)
    stage.catch_up(3)
    stage.expect(stage.committed == 4, "the new leader commits")
    stage.register(1)
    stage.heal(1, 2, 3)
    stage.expect(stage.epochs(1) == [0, 0, 1, 1], "the zombie's own records are gone")


def s8_zombie_shrinks_alone(build: Build) -> None:
    """KIP-497: a leader that wants to be alone counts the others until the store agrees."""
    stage = Stage(build, min_isr=1)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.leave(1, 2, 3)
    stage.produce(1, 3)
    stage.lag(1)
    stage.expect(stage.committed == 2, "a proposal commits nothing")
    stage.let(WriteIsr)
    stage.expect(stage.committed == 2, "the store refuses")
    stage.settle_isr()
    stage.expect(stage.leader(1).term.resigned, "the zombie has read who leads")
    stage.register(1)
    stage.heal(1, 2, 3)


def _without_3(build: Build, records: int) -> Stage:
    """Leader 1 with 2 in sync; 3 is out, back again, and holds none of `records`."""
    stage = Stage(build)
    stage.leave(3, 1, 2)
    stage.register(3)
    stage.produce(1, records)
    stage.catch_up(2)
    return stage


def s9_joining_member_counts_at_once(build: Build) -> None:
    """KIP-497: who may be in the ISR already is waited for."""
    stage = _without_3(build, 0)
    stage.pull(3)
    change = stage.take(WriteIsr)
    stage.produce(1, 10)
    stage.catch_up(2)
    stage.expect(stage.committed == 0, "3 may be in sync by now, and holds nothing")
    stage.arrive(change)
    stage.elect(3, 1, 2, 3)
    stage.heal(1, 2, 3)


def s10_join_below_the_epoch_start(build: Build) -> None:
    """A new leader's high watermark is late: reaching it is not holding what is committed."""
    stage = Stage(build)
    stage.produce(1, 5)
    stage.catch_up(2, 3)
    stage.leave(3, 1, 2)
    stage.produce(1, 3)
    stage.pull(2)
    stage.arrive(stage.ask(2))
    stage.drop(FetchedRecords)
    stage.expect(stage.committed == 8, "eight are acknowledged")
    stage.expect(stage.node(2).high_watermark == 5, "of which r2 knows five")
    stage.kill(1)
    stage.leave(1, 2)
    stage.register(3)
    stage.arrive(stage.ask(3))
    stage.expect(not stage.has(WriteIsr), "3 does not hold what was acknowledged")
    stage.settle_isr()
    stage.let(FetchedRecords, target=3)
    stage.restart(1, 1, 2, 3)
    stage.heal(1, 2, 3)


def s11_removed_and_added_again(build: Build) -> None:
    """What a replica held before it was replaced says nothing about the new one."""
    stage = Stage(build)
    stage.produce(1, 10)
    stage.catch_up(2, 3)
    stage.node(3).log = WalkLog()
    stage.node(3).drop_role()
    stage.node(3).saved_high_watermark = 0
    stage.write(stage.state._replace(isr=(BrokerId(1), BrokerId(2))))
    stage.tell(1)
    stage.let(WriteIsr)
    stage.expect(3 not in stage.state.isr, "3 has not fetched since")
    stage.node(3).register()
    stage.heal(1, 2, 3)


def s12_stale_broker_epoch(build: Build) -> None:
    """KIP-903: who fetched is not who would join: it lost its log in between."""
    stage = _without_3(build, 3)
    stage.catch_up(3)
    change = stage.take(WriteIsr)
    stage.cut_power(3, 0)
    stage.restart(3)
    stage.arrive(change)
    stage.expect(3 not in stage.state.isr, "the store knows a later registration")
    stage.heal(1, 2, 3)


def s15_same_members_another_version(build: Build) -> None:
    """ABA: a request of an older version fails though the ISR is the same again."""
    stage = _without_3(build, 3)
    stage.catch_up(3)
    change = stage.take(WriteIsr)
    stage.arrive(change)
    stage.drop(WriteOutcome)
    stage.inform(1)
    stage.expect(3 in stage.state.isr, "3 joined")
    stage.produce(1)
    stage.world.now_ms += 60
    stage.catch_up(2)
    stage.lag(1)
    stage.catch_up(2)
    stage.lag(1)
    stage.settle_isr()
    stage.expect(3 not in stage.state.isr, "3 left")
    stage.catch_up(2)
    stage.expect(stage.committed == 4, "committed without 3")
    stage.arrive(change)
    stage.expect(3 not in stage.state.isr, "the late copy changes nothing")
    stage.settle_isr()
    stage.heal(1, 2, 3)


def s15_unknown_but_made(build: Build) -> None:
    """The change was made and its answer lost: by its nonce the leader knows it for its own."""
    stage = _without_3(build, 3)
    stage.catch_up(3)
    stage.let(WriteIsr)
    stage.world.lose(stage.take(WriteOutcome))
    stage.let(WriteOutcome)
    stage.produce(1)
    stage.catch_up(2)
    stage.expect(stage.committed == 3, "3 is in sync and does not hold the last")
    stage.settle_isr()
    stage.expect(stage.leader(1).term.isr == (1, 2, 3), "the leader has read it")
    stage.heal(1, 2, 3)


def s15_unknown_and_not_made(build: Build) -> None:
    """The change was lost on its way: the leader counts on nothing it has not read."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.produce(1)
    stage.world.now_ms += 60
    stage.catch_up(2)
    stage.lag(1)
    stage.world.lose(stage.take(WriteIsr))
    stage.let(WriteOutcome)
    stage.catch_up(2)
    stage.expect(stage.committed == 2, "3 is in sync until the store says otherwise")
    stage.settle_isr()
    stage.heal(1, 2, 3)


def s15_older_state_told_late(build: Build) -> None:
    """The controller's word about an older version comes after a newer one."""
    stage = Stage(build)
    stage.expire(3)
    stage.world.controller.look()
    stage.world.controller.plan()
    stage.settle_isr()
    stage.world.deliver(stage.world.network.pop(0))
    old = stage.take(State, target=1)
    stage.arrive(old)
    stage.drop(State)
    stage.register(3)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.settle_isr()
    stage.expect(stage.state.isr == (1, 2, 3), "3 is in sync again")
    stage.arrive(old)
    stage.produce(1)
    stage.catch_up(2)
    stage.expect(stage.committed == 2, "3 does not hold the last")
    stage.heal(1, 2, 3)


def s18_alone_below_the_minimum(build: Build) -> None:
    """KIP-966: a leader alone commits nothing, so that the eligible hold all that is committed."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.leave(2, 1, 3)
    stage.leave(3, 1)
    stage.produce(1, 3)
    leader = stage.leader(1)
    now_ms = stage.world.now_ms
    stage.expect(leader.term.high_watermark == 2, "nothing is committed")
    stage.expect(leader.term.under_min_isr, "acks=all is refused, also what was appended before")
    stage.expect(leader.term.is_certain(now_ms), "acks=1 is not")
    stage.cut_power(1, 2)
    stage.expire(1)
    stage.plan()
    stage.register(3)
    stage.plan(3)
    stage.expect(stage.state.leader == 3, "the eligible leads")
    stage.restart(1, 1, 3)
    stage.register(2)
    stage.heal(1, 2, 3)


def minimum_lowered_while_others_are_eligible(build: Build) -> None:
    """A lower minimum commits nothing before the store has forgotten who was eligible."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.leave(2, 1, 3)
    stage.leave(3, 1)
    stage.produce(1)
    stage.expect(stage.state.elr == (3,), "3 is eligible")
    stage.world.min_isr = stage.world.controller.min_isr = 1
    stage.node(1).set_min_isr(1)
    stage.expect(stage.committed == 2, "the eligible does not hold the last")
    stage.settle_isr()
    stage.expect(stage.state.elr == (), "nobody is eligible any more")
    stage.expect(stage.committed == 3, "the leader commits alone")
    stage.register(2)
    stage.register(3)
    stage.heal(1, 2, 3)


def s20_reading_near_a_follower(build: Build) -> None:
    """KIP-392: up to the follower's high watermark, and no false end beyond it."""
    stage = Stage(build)
    stage.produce(1, 8)
    stage.pull(2, 3)
    stage.catch_up(3)
    stage.pull(2)
    stage.leave(3, 1, 2)
    stage.register(3)
    stage.catch_up(2)
    third = stage.node(3)
    third.log.truncate_to(2)
    third.log.sync()
    third.saved_high_watermark = 0
    third.register()
    stage.inform(3)
    stage.pull(3)
    near = stage.follower(3)
    end = stage.end(3)
    stage.expect(near.high_watermark <= end, "nothing is shown that is not there")
    stage.expect(near.check_read(end) is ErrorCode.NONE, "what is committed is read")
    stage.expect(
        near.check_read(end + 1) is ErrorCode.OFFSET_NOT_AVAILABLE, "what is not there yet waits"
    )
    stage.settle_isr()
    stage.heal(1, 2, 3)
    stage.expect(stage.leader(1).term.readable_replicas(8) == (1, 2, 3), "all in sync can be read")


def r10_end_is_held_back_after_an_election(build: Build) -> None:
    """KIP-207: the end that consumers are told never goes back."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.pull(2)
    stage.pull(3)
    stage.arrive(stage.ask(2))
    stage.arrive(stage.ask(3))
    stage.drop(FetchedRecords)
    stage.world.committed.show_end(stage.node(1))
    stage.kill(1)
    stage.leave(1, 2, 3)
    stage.world.committed.show_end(stage.node(2))
    stage.expect(stage.leader(2).term.latest_offset() is None, "the new leader does not know yet")
    stage.catch_up(3)
    stage.expect(stage.leader(2).term.latest_offset() == 2, "now it does")
    stage.restart(1, 1, 2, 3)
    stage.heal(1, 2, 3)


def s32_late_copy_of_a_rejection(build: Build) -> None:
    """A rejection of one proposal says nothing of the next; only a new version shrinks the ISR."""
    stage = _without_3(build, 3)
    stage.catch_up(3)
    first = stage.take(WriteIsr)
    stage.expire(3)
    stage.arrive(first)
    rejected = stage.take(WriteOutcome)
    stage.arrive(rejected)
    stage.register(3)
    stage.catch_up(3)
    stage.settle_isr()
    stage.catch_up(3)
    second = stage.take(WriteIsr)
    stage.arrive(rejected)
    stage.arrive(second)
    stage.produce(1)
    stage.catch_up(2)
    stage.expect(stage.committed == 3, "3 is in sync and does not hold the last")
    stage.settle_isr()
    stage.heal(1, 2, 3)


def one_proposal_at_a_time(build: Build) -> None:
    """What is under way is answered before the next is asked for."""
    stage = _without_3(build, 3)
    stage.catch_up(3)
    held = stage.take(WriteIsr)
    stage.arrive(stage.ask(3))
    stage.expect(not stage.has(WriteIsr), "3 asked again")
    stage.drop(FollowerFetch, FetchedRecords)
    again = stage.leader(1).begin(now_ms=stage.world.now_ms)
    stage.expect(AdvanceHighWatermark(3) not in again, "nothing moves by itself")
    stage.world.lose(held)


SCRIPTS = {
    p15_high_watermark_travels: ("commits_at_own_end",),
    s7_zombie_leader: ("commits_at_own_end",),
    s8_zombie_shrinks_alone: ("eager_shrink",),
    s9_joining_member_counts_at_once: ("counts_committed_isr_only",),
    s10_join_below_the_epoch_start: ("joins_below_epoch_start",),
    s11_removed_and_added_again: ("remembers_ends",),
    s12_stale_broker_epoch: ("no_broker_epoch_check",),
    s15_same_members_another_version: ("no_version_check",),
    s15_unknown_but_made: ("unknown_is_refused",),
    s15_unknown_and_not_made: ("unknown_is_made",),
    s15_older_state_told_late: ("takes_older_states",),
    s18_alone_below_the_minimum: ("commits_below_min_isr",),
    minimum_lowered_while_others_are_eligible: ("commits_despite_eligible",),
    s20_reading_near_a_follower: ("believes_high_watermark",),
    r10_end_is_held_back_after_an_election: ("shows_end_early",),
    s32_late_copy_of_a_rejection: ("reverts_on_reject",),
    one_proposal_at_a_time: (),
}
