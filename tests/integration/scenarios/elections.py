"""Scripts of who is elected: S14, S17, S19, S30, power cuts of all."""

from verify.walk.messages import State, WriteIsr, WriteState
from verify.walk.stage import Stage
from verify.walk.world import Build

from ottla.base.ids import BrokerId


def s14_stale_controller(build: Build) -> None:
    """A controller that was stopped before it wrote finds its write refused."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.expire(1)
    stage.world.controller.look()
    stage.world.controller.plan()
    old = stage.take(WriteState)
    stage.world.fail_over_controller()
    stage.plan(2, 3)
    stage.register(1)
    stage.catch_up(1, 3)
    stage.settle_isr()
    stage.leave(3, 1, 2)
    stage.produce(2, 3)
    stage.catch_up(1)
    stage.expect(stage.committed == 5, "committed by 2 and 1")
    stage.arrive(old)
    stage.expect(3 not in stage.state.isr, "the stale write is refused")
    stage.register(3)
    stage.heal(1, 2, 3)


def s17_last_replica_standing(build: Build) -> None:
    """KIP-966: the last in sync loses its tail; who left before it still has all, and leads."""
    stage = Stage(build, replicas=(3, 2, 1))
    stage.produce(3, 3)
    stage.catch_up(1, 2)
    stage.leave(1, 2, 3)
    stage.produce(3, 2)
    stage.catch_up(2)
    stage.expect(stage.committed == 5, "two hold what is committed")
    stage.kill(2)
    stage.leave(2, 3)
    stage.produce(3)
    stage.cut_power(3, 1)
    stage.expire(3)
    stage.plan()
    stage.register(1)
    stage.plan()
    stage.expect(stage.state.leader == -1, "1 does not hold all")
    stage.restart(3, 3)
    stage.expect(stage.state.leader == -1, "3 has lost its tail")
    stage.restart(2, 1, 2, 3)
    stage.expect(stage.state.leader == 2, "the eligible leads")
    stage.heal(1, 2, 3)
    stage.expect(stage.end(3) == 5, "nothing is lost")


def s17_all_lose_power(build: Build) -> None:
    """Tails differ: recovery waits for all who were eligible and takes the furthest."""
    stage = Stage(build)
    stage.produce(1, 4)
    stage.catch_up(2, 3)
    stage.cut_power(1, 2)
    stage.cut_power(2, 4)
    stage.cut_power(3, 0)
    stage.expire(1, 2, 3)
    stage.plan()
    stage.restart(3, 3)
    stage.expect(stage.state.leader == -1, "one of three is back")
    stage.restart(1, 1, 3)
    stage.expect(stage.state.leader == -1, "two of three are back")
    stage.restart(2, 1, 2, 3)
    stage.expect(stage.state.leader == 2, "the furthest leads")
    stage.heal(1, 2, 3)
    stage.expect(stage.end(3) == 4, "nothing is lost")


def all_lose_power_and_one_is_believed_alive(build: Build) -> None:
    """The session of a dead broker outlives the return of the others: hopes are not given up."""
    stage = Stage(build)
    stage.produce(1, 4)
    stage.catch_up(2, 3)
    stage.cut_power(1, 4)
    stage.cut_power(2, 0)
    stage.cut_power(3, 1)
    stage.restart(1, 1)
    stage.restart(3, 1, 3)
    stage.expect(stage.state.leader == 2, "2 is believed alive")
    stage.restart(2, 1, 2, 3)
    stage.expect(stage.state.leader == 1, "the furthest leads")
    stage.heal(1, 2, 3)
    stage.expect(stage.end(2) == 4, "nothing is lost")


def leader_elected_for_its_earlier_life(build: Build) -> None:
    """A broker was elected, lost power before it heard of it, and hears of it afterwards."""
    stage = Stage(build)
    stage.produce(1, 4)
    stage.catch_up(2, 3)
    stage.elect(2)
    stage.cut_power(2, 1)
    stage.world.restart(2)
    stage.inform(1, 2, 3)
    stage.expect(stage.node(2).role is None, "2 does not lead what it was elected for before")
    stage.catch_up(1, 3)
    stage.expect(stage.end(3) == 4, "3 keeps what is committed")
    stage.plan(1, 2, 3)
    stage.heal(1, 2, 3)


def s19_preferred_is_not_in_sync(build: Build) -> None:
    """The preferred replica lives and lags: it does not lead."""
    stage = Stage(build)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.kill(1)
    stage.leave(1, 2, 3)
    stage.produce(2, 2)
    stage.catch_up(3)
    stage.restart(1, 1)
    stage.world.controller.prefer()
    stage.let(WriteState)
    stage.tell(1, 2, 3)
    stage.expect(stage.state.leader == 2, "1 is not in sync")
    stage.heal(1, 2, 3)
    stage.world.controller.prefer()
    stage.let(WriteState)
    stage.tell(1, 2, 3)
    stage.expect(stage.state.leader == 1, "now it is")
    stage.heal(1, 2, 3)


def s19_preferred_leaves_meanwhile(build: Build) -> None:
    """The leader shrinks the ISR between the controller's look and its write."""
    stage = Stage(build, replicas=(3, 2, 1))
    stage.produce(3)
    stage.catch_up(1, 2)
    stage.elect(2, 1, 2, 3)
    stage.produce(2, 2)
    stage.world.now_ms += 60
    stage.catch_up(1)
    stage.world.controller.look()
    stage.world.controller.prefer()
    election = stage.take(WriteState)
    stage.lag(2)
    stage.settle_isr()
    stage.expect(3 not in stage.state.isr, "3 left the ISR")
    stage.catch_up(1)
    stage.expect(stage.committed == 3, "committed without 3")
    stage.arrive(election)
    stage.expect(stage.state.leader == 2, "the election is refused")
    stage.drop(State)
    stage.heal(1, 2, 3)


def s30_move_with_bounces(build: Build) -> None:
    """A reassignment with min ISR = RF ends where it should, though brokers bounce meanwhile."""
    stage = Stage(build, brokers=4, min_isr=3)
    everyone = (1, 2, 3, 4)
    stage.produce(1, 3)
    stage.catch_up(2, 3)
    stage.world.controller.look()
    stage.world.controller.move([BrokerId(4), BrokerId(2), BrokerId(3)])
    stage.let(WriteState)
    stage.tell(*everyone)
    stage.pull(4)
    for broker in (2, 4, 1):
        stage.kill(broker)
        stage.leave(broker, *everyone)
        stage.restart(broker, *everyone)
        stage.plan(*everyone)
        stage.catch_up(*everyone)
        stage.settle_isr()
        stage.produce(stage.state.leader)
    stage.heal(2, 3, 4)
    stage.plan(*everyone)
    stage.heal(2, 3, 4)
    stage.expect(sorted(stage.state.replicas) == [2, 3, 4], f"the move is over: {stage.state}")
    stage.expect(stage.end(1) == 0, "1 has given its log up")


def group_commit_survives_a_power_cut_of_all(build: Build) -> None:
    """With group commit what is acknowledged is on the disk of every member in sync."""
    stage = Stage(build, group_commit=True)
    stage.produce(1, 2)
    stage.catch_up(2, 3)
    stage.expect(stage.committed == 0, "the leader has not flushed")
    stage.node(1).sync()
    stage.check()
    stage.expect(stage.committed == 2, "now it has")
    stage.produce(1, 2)
    stage.node(1).sync()
    for broker in (2, 3):
        stage.node(broker).fetch()
        stage.settle_fetches(broker)
        stage.node(broker).fetch()
        stage.settle_fetches(broker)
    stage.expect(stage.committed == 2, "the followers have not flushed")
    for broker in (1, 2, 3):
        stage.cut_power(broker, stage.node(broker).log.synced_end)
    stage.expire(1, 2, 3)
    stage.plan()
    for broker in (3, 2, 1):
        stage.restart(broker, 1, 2, 3)
    stage.heal(1, 2, 3)
    stage.expect(not stage.has(WriteIsr), "nothing is open")


SCRIPTS = {
    s14_stale_controller: ("stale_controller",),
    s17_last_replica_standing: ("no_elr", "trusts_lossy"),
    s17_all_lose_power: ("recovers_too_early", "trusts_lossy"),
    all_lose_power_and_one_is_believed_alive: ("forgets_eligible",),
    leader_elected_for_its_earlier_life: ("leads_for_earlier_life",),
    s19_preferred_is_not_in_sync: ("prefers_anyone",),
    s19_preferred_leaves_meanwhile: ("stale_controller",),
    s30_move_with_bounces: (),
    group_commit_survives_a_power_cut_of_all: ("counts_unflushed", "fetches_unflushed"),
}
