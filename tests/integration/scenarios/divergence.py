"""Scripts of logs that part: S1 to S6, S31."""

from verify.walk.messages import FetchedRecords, Parting, WriteIsr
from verify.walk.stage import Stage
from verify.walk.world import Build

from ottla.base.errors import ErrorCode
from ottla.replica.effects import Diverging


def s1_crash_and_immediate_election(build: Build) -> None:
    """KIP-101/1: m2 is acknowledged; the follower that restarts and is elected still has it."""
    stage = Stage(build, replicas=(2, 1), brokers=2, min_isr=1)
    stage.produce(2)
    stage.pull(1, 2)
    stage.produce(2)
    stage.pull(1)
    stage.arrive(stage.ask(1))
    stage.expect(stage.committed == 2, "m2 is acknowledged")
    stage.drop(FetchedRecords)
    stage.expect(stage.node(1).high_watermark == 1, "the follower does not know that")
    stage.kill(1)
    stage.restart(1, 1)
    stage.expect(stage.end(1) == 2, "the follower keeps m2")
    stage.kill(2)
    stage.leave(2, 1)
    leader = stage.leader(1)
    stage.expect(leader.term.check_read(2) is ErrorCode.NONE, "a consumer at 2 waits")
    stage.restart(2, 1, 2)
    stage.heal(1, 2)
    stage.expect(stage.end(2) == 2, "m2 is on both")


def s2_divergence_after_loss(build: Build) -> None:
    """KIP-101/2: m2 is on one only, m3 takes its offset; the first to have led drops m2."""
    stage = Stage(build, replicas=(1, 2), brokers=2, min_isr=1)
    stage.produce(1)
    stage.pull(2, 2)
    stage.produce(1)
    stage.kill(1)
    stage.leave(1, 2)
    stage.produce(2)
    stage.restart(1, 1, 2)
    stage.heal(1, 2)
    stage.expect(stage.epochs(1) == [0, 1], "m2 gave way to m3")


def s2_power_cut_of_both(build: Build) -> None:
    """KIP-101/2: m2 is acknowledged; whoever lost it does not lead before the other is asked."""
    stage = Stage(build, replicas=(1, 2), brokers=2, min_isr=1)
    stage.produce(1, 2)
    stage.catch_up(2)
    stage.expect(stage.committed == 2, "m2 is acknowledged")
    stage.cut_power(1, 2)
    stage.cut_power(2, 1)
    stage.expire(1, 2)
    stage.plan()
    stage.restart(2, 2)
    stage.expect(stage.state.leader == -1, "nobody leads yet")
    stage.restart(1, 1, 2)
    stage.expect(stage.state.leader == 1, "who has more leads")
    stage.heal(1, 2)
    stage.expect(stage.end(2) == 2, "m2 is on both")


def s3_three_copies_and_one_crash(build: Build) -> None:
    """002 s1-s3: acknowledged with three copies, the high watermark late, two leaders lost."""
    stage = Stage(build)
    stage.produce(1, 3)
    stage.catch_up(2, 3)
    stage.produce(1)
    stage.pull(2)
    stage.pull(3)
    stage.arrive(stage.ask(2))
    stage.arrive(stage.ask(3))
    stage.drop(FetchedRecords)
    stage.expect(stage.committed == 4, "m is acknowledged with three copies")
    stage.elect(2, 2, 3)
    stage.expect(stage.end(3) == 4, "r3 keeps m")
    stage.kill(2)
    stage.leave(2, 1, 3)
    stage.kill(1)
    stage.leave(1, 3)
    stage.expect(stage.end(3) == 4, "r3 has m when it leads")
    stage.restart(1, 1, 2, 3)
    stage.restart(2, 1, 2, 3)
    stage.heal(1, 2, 3)
    stage.expect(stage.end(1) == 4, "nothing is lost")


def _s4(build: Build, extra: int, terms: int) -> None:
    stage = Stage(build, replicas=(1, 2), brokers=2, min_isr=1)
    stage.produce(1, 11)
    stage.catch_up(2)
    stage.produce(1, 10)
    stage.elect(2, 2)
    stage.produce(2, extra)
    for term in range(2, terms):
        # Each is elected without the other hearing of it, and writes a little.
        broker = 1 if term % 2 == 0 else 2
        stage.elect(broker, broker)
        stage.produce(broker, term)
    stage.elect(1, 1, 2)
    stage.inform(1, 2)
    stage.heal(1, 2)
    stage.expect(stage.end(1) >= 21, "the leader keeps its own")


def s4_fast_fail_over(build: Build) -> None:
    """KIP-279: two fail-overs that one broker misses; logs part at 11 whatever k is."""
    for extra in (4, 9, 10, 14):
        _s4(build, extra, 2)


def s4_many_fast_fail_overs(build: Build) -> None:
    """KIP-279: three, four and five terms in a row; each round of asking cuts one more."""
    for terms in (3, 4, 5):
        _s4(build, 4, terms)


def s5_zombie_follower(build: Build) -> None:
    """KAFKA-6880: a follower that missed two terms, with a tail that seems to fit."""
    stage = Stage(build)
    stage.produce(1, 4)
    stage.catch_up(2, 3)
    stage.produce(1)
    stage.pull(2)
    stage.leave(2, 1, 3)
    stage.elect(3, 1, 3)
    stage.catch_up(1)
    stage.expect(stage.end(1) == 4, "r1 cut what r3 does not have")
    stage.produce(3, 2)
    stage.catch_up(1)
    stage.elect(1, 1, 3)
    stage.catch_up(3)
    stage.pull(2, 3)
    stage.expect(stage.epochs(2) == [0] * 5, "the zombie is refused")
    stage.expect(2 not in stage.state.isr, "the zombie is not in sync")
    stage.register(2)
    stage.heal(1, 2, 3)
    stage.expect(stage.epochs(2) == [0, 0, 0, 0, 1, 1], "its tail is gone")


def s5_fetch_of_an_older_term(build: Build) -> None:
    """KIP-320: a fetch sent two terms ago says nothing of what its sender holds today."""
    stage = Stage(build)
    stage.produce(1)
    stage.catch_up(2, 3)
    stage.produce(1, 2)
    stage.pull(2)
    old = stage.ask(2)
    stage.elect(3, 2, 3)
    stage.catch_up(2)
    stage.expect(stage.end(2) == 1, "r2 cut what r3 does not have")
    stage.elect(1, 1, 3)
    stage.arrive(old)
    stage.catch_up(3)
    stage.expect(stage.committed == 1, "r2 has not fetched in this term")
    stage.heal(1, 2, 3)


def s5_followers_of_an_older_term(build: Build) -> None:
    """P23: who leads again after a term it missed knows nothing of its followers any more."""
    stage = Stage(build)
    stage.produce(1)
    stage.catch_up(2, 3)
    stage.produce(1, 2)
    stage.pull(2, 2)
    stage.elect(3, 2, 3)
    stage.catch_up(2)
    stage.elect(1, 1, 3)
    stage.catch_up(3)
    stage.expect(stage.committed == 1, "r2 has not fetched in this term")
    stage.heal(1, 2, 3)


def s6_consumer_beyond_the_new_leader(build: Build) -> None:
    """KIP-320: a consumer's position that the new leader does not share is answered by epoch."""
    stage = Stage(build)
    stage.produce(1, 3)
    stage.catch_up(2, 3)
    stage.produce(1, 3)
    stage.kill(1)
    stage.leave(1, 2, 3)
    stage.produce(2, 5)
    stage.expect(stage.leader(2).term.compare(6, 0) == (Diverging(0, 3),), "the logs part at 3")
    stage.expect(stage.leader(2).term.compare(3, 0) is None, "what is shared is served")


def s31_late_diverging_answer(build: Build) -> None:
    """ABA of offsets: the second copy of 'cut at 8' must not cut an acknowledged record."""
    stage = Stage(build)
    stage.produce(1, 8)
    stage.catch_up(2, 3)
    stage.produce(1)
    stage.elect(2, 1, 2, 3)
    stage.arrive(stage.ask(1))
    answer = stage.take(Parting, target=1)
    stage.arrive(answer)
    stage.expect(stage.end(1) == 8, "r1 cut its own record")
    stage.produce(2)
    stage.catch_up(1, 3)
    stage.expect(stage.committed == 9, "the record at 8 is acknowledged")
    stage.arrive(stage.ask(1))
    stage.drop(FetchedRecords)
    stage.arrive(answer)
    stage.expect(stage.end(1) == 9, "the late copy says nothing")


def deleted_records_vouch_for_nothing(build: Build) -> None:
    """A leader that deleted its records of a term cannot tell whether another's are the same."""
    stage = Stage(build, min_isr=2)
    stage.produce(1, 4)
    stage.elect(2, 2, 3)
    stage.produce(2, 4)
    stage.expire(1)
    stage.plan(2, 3)
    stage.catch_up(3)
    stage.expect(stage.committed == 4, "four others are acknowledged")
    stage.node(2).log.advance_log_start(4)
    stage.register(1)
    stage.pull(1)
    stage.let(WriteIsr)
    stage.catch_up(1)
    first = stage.node(1).log
    stage.expect(first.log_start_offset == 4, "who came back begins where the leader begins")


SCRIPTS = {
    s1_crash_and_immediate_election: ("truncate_to_hw",),
    s2_divergence_after_loss: ("no_comparison",),
    s2_power_cut_of_both: ("trusts_lossy",),
    s3_three_copies_and_one_crash: ("truncate_to_hw",),
    s4_fast_fail_over: ("kip101_only", "own_epochs_ignored", "restarts_where_logs_part"),
    s4_many_fast_fail_overs: ("kip101_only", "own_epochs_ignored"),
    s5_zombie_follower: ("zombie_follows",),
    s5_fetch_of_an_older_term: ("no_epoch_fence",),
    s5_followers_of_an_older_term: ("keeps_followers",),
    s6_consumer_beyond_the_new_leader: ("no_comparison",),
    s31_late_diverging_answer: ("no_nonce",),
    deleted_records_vouch_for_nothing: ("vouches_for_deleted",),
}
