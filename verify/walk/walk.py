"""The walk: from one seed, step by step, until the end or a violation."""

import random
from collections.abc import Callable

from ottla.base.ids import BrokerId
from ottla.replica.follower import NO_FETCH, Follower
from ottla.replica.leader import Leader
from verify.walk import profile
from verify.walk.messages import FollowerFetch, Message, WriteIsr, WriteState
from verify.walk.node import LAG_MS_MAX, WalkNode
from verify.walk.violation import Violation
from verify.walk.world import SHIPPED, Build, WalkWorld

# A log no longer than this keeps the ways to lose records close together.
LOG_RECORDS = 120
# A follower that hears nothing asks again; no more than so many of its fetches are under way.
FETCHES = 3
# How often a follower does not wait for its answer.
IMPATIENCE = 0.2
# How much of what happens to brokers happens to the victim, where there is one.
VICTIM_SHARE = 0.8
# How often everything is compared record by record.
CHECK_STEPS = 50
HEAL_ROUNDS = 300
CATCH_UP_ROUNDS = 5

Draw = Callable[[random.Random, int], profile.WalkProfile]


class ReplicaWalk:
    """One run. All chance comes from `seed`; what happens is the same each time.

    `world`: go on from there, without further loss of power (what the world may still lose is
    not known); else a world is drawn.
    """

    def __init__(
        self,
        seed: int,
        build: Build = SHIPPED,
        world: WalkWorld | None = None,
        *,
        draw: Draw = profile.draw,
    ) -> None:
        self.rng = random.Random(seed)
        self.profile = draw(self.rng, seed)
        if world is not None:
            self.profile = profile.within(
                self.profile, len(world.nodes), world.store.state.replicas, world.group_commit
            )
        self.world = world or WalkWorld(
            build,
            replicas=self.profile.replicas,
            brokers=self.profile.brokers,
            min_isr=self.profile.min_isr,
            group_commit=self.profile.group_commit,
            silence_ms=self.profile.silence_ms,
            is_punctual=self.profile.is_punctual,
        )
        if world is not None:
            world.is_punctual = False
            for node in world.nodes.values():
                node.watch = None
        self._nodes: list[WalkNode] = list(self.world.nodes.values())
        self._victim = self.world.nodes.get(BrokerId(self.profile.victim))
        self._leader, self._follower = build.node.leader_class, build.node.follower_class
        self._power_cuts = self.profile.power_cuts
        self._values = 0
        self._delayed: list[Message] = []
        # Until when brokers stand still, by id.
        self._stalled: dict[BrokerId, int] = {}
        self._steps: list[tuple[str, Callable[[], None]]] = []
        for name, weight in self.profile.weights:
            self._steps += [(name, getattr(self, f"_{name}"))] * weight
        self.taken = 0

    def run(self, steps: int) -> None:
        """Take steps. Raises Violation."""
        for _ in range(steps):
            self.step()
        self.world.committed.check_all()

    # Hot: a fifth of a million times per second.
    def step(self) -> str:
        """Take one step; its name. Raises Violation."""
        self.world.now_ms += 1
        self.taken += 1
        name, take = self._steps[int(self.rng.random() * len(self._steps))]
        take()
        if self.taken % CHECK_STEPS == 0:
            self.world.committed.check_all()
        return name

    def heal(self) -> None:
        """End all faults: within bounded work all replicas are in sync and equal (liveness)."""
        world = self.world
        world.network += self._delayed
        self._delayed.clear()
        for _ in range(HEAL_ROUNDS):
            if self._whole():
                return
            world.now_ms += LAG_MS_MAX
            self._heal_once()
        state = world.store.state
        ends = {n.id: (n.log.log_end_offset, n.high_watermark) for n in self._nodes}
        raise Violation(f"not whole again after {HEAL_ROUNDS} rounds: {state}, ends {ends}")

    def _heal_once(self) -> None:
        world = self.world
        for node in self._nodes:
            if not node.up:
                world.restart(node.id)
            elif world.store.live.get(node.id) != node.registration.broker_epoch:
                node.register()
            node.confirm_session()
            node.set_min_isr(world.min_isr)
            node.sync()
            node.fetch()
            node.tick(world.now_ms)
        world.tell_live()
        world.controller.min_isr = world.min_isr
        world.controller.look()
        for _ in range(3):
            waiting = world.network[:]
            world.network.clear()
            for message in waiting:
                world.deliver(message)
            for node in self._nodes:
                node.sync()
        world.controller.plan()
        world.tell_state(tuple(self._nodes))

    def _whole(self) -> bool:
        world = self.world
        state = world.store.state
        if sorted(state.isr) != sorted(state.replicas) or state.adding or state.removing:
            return False
        members = [world.nodes[broker] for broker in state.replicas]
        if not isinstance(world.nodes[state.leader].role, Leader):
            return False
        end = members[0].log.log_end_offset
        start = max(node.log.log_start_offset for node in members)
        return all(
            node.high_watermark == end
            and node.log.records[start:] == members[0].log.records[start:]
            for node in members
        )

    # ------------------------------------------------------------ steps

    def _any(self) -> WalkNode:
        return self._nodes[int(self.rng.random() * len(self._nodes))]

    def _one(self) -> WalkNode:
        """The broker that the next event happens to."""
        if self._victim is not None and self.rng.random() < VICTIM_SHARE:
            return self._victim
        return self._any()

    def _deliver(self) -> None:
        world, rng = self.world, self.rng
        network = world.network
        if not network:
            return
        slot = int(rng.random() * len(network))
        message = network[slot]
        if self._stalled and self._stands_still(getattr(message, "target", None)):
            return
        if rng.random() >= self.profile.repeat:
            network[slot] = network[-1]
            network.pop()
        if message.__class__ in self.profile.late and rng.random() < self.profile.delay:
            self._delayed.append(message)
            return
        if rng.random() < self.profile.drop:
            world.lose(message)
        else:
            world.deliver(message)

    def _late(self) -> None:
        """What was held up somewhere for a long time arrives."""
        if self._delayed:
            slot = int(self.rng.random() * len(self._delayed))
            self.world.deliver(self._delayed.pop(slot))

    def _fetch(self) -> None:
        followers = [node for node in self._nodes if node.role.__class__ is self._follower]
        if not followers:
            return
        node = followers[int(self.rng.random() * len(followers))]
        if self._stalled and self._stands_still(node.id):
            return
        role = node.role
        assert isinstance(role, Follower)
        if role.nonce != NO_FETCH and self.rng.random() >= IMPATIENCE:
            return
        if self.profile.group_commit and self.rng.random() < 0.6:
            node.sync()
        waiting = 0
        for message in self.world.network:
            if message.__class__ is FollowerFetch and message[1] == node.id:
                waiting += 1
        if waiting < FETCHES:
            node.fetch()

    def _produce(self) -> None:
        leaders = [node for node in self._nodes if node.role.__class__ is self._leader]
        if not leaders:
            return
        node = leaders[int(self.rng.random() * len(leaders))]
        if node.log.log_end_offset < LOG_RECORDS:
            self._values += 1
            node.produce(self._values)

    def _tick(self) -> None:
        node = self._any()
        if not node.up or self._stands_still(node.id):
            return
        now_ms = self.world.now_ms
        if not self.world.is_punctual:
            # How late a follower is counts for nothing but liveness: any answer must be safe.
            now_ms += int(self.rng.random() * LAG_MS_MAX)
        node.tick(now_ms)

    def _stands_still(self, broker: BrokerId | None) -> bool:
        if broker is None:
            return False
        return self._stalled.get(broker, 0) > self.world.now_ms

    def _stall(self) -> None:
        """A broker stands still, mostly for less than a follower may lag."""
        for_ms = int(self.rng.random() * 1.2 * LAG_MS_MAX)
        self._stalled[self._any().id] = self.world.now_ms + for_ms

    def _idle(self) -> None:
        """Followers get what they lack, as far as nothing hinders them; then nothing happens."""
        world = self.world
        for _ in range(CATCH_UP_ROUNDS):
            for node in self._nodes:
                if node.up and not self._stands_still(node.id):
                    node.sync()
                    node.fetch()
            waiting, world.network = world.network, []
            for message in waiting:
                if self._stands_still(getattr(message, "target", None)):
                    world.network.append(message)
                else:
                    world.deliver(message)
        if self.rng.random() < 0.5:
            for node in self._nodes:
                node.repeat()
        world.now_ms += int(self.rng.random() * 3 * LAG_MS_MAX)
        state = world.store.state
        if len(state.isr) == len(state.replicas):
            world.seen["idle with all in sync"] += 1

    def _plan(self) -> None:
        controller = self.world.controller
        if WriteState in map(type, self.world.network) and self.rng.random() < 0.8:
            return
        if self.rng.random() < 0.7:
            controller.look()
            controller.min_isr = self.world.min_isr
        controller.plan()

    def _prefer(self) -> None:
        self.world.controller.prefer()

    def _fail_over(self) -> None:
        self.world.fail_over_controller()

    def _tell(self) -> None:
        node = self._any()
        self.world.tell_state((node,))
        self.world.tell_live((node,))

    def _doubt(self) -> None:
        node = self._one()
        if not node.up or node.registration.confirmed_until_ms <= self.world.now_ms:
            self.world.expire(node.id)
        elif self.rng.random() < 0.7:
            node.doubt_session()

    def _register(self) -> None:
        node = self._one()
        if not node.up:
            return
        if self.world.store.live.get(node.id) == node.registration.broker_epoch:
            node.confirm_session()
        else:
            node.register()

    def _sync(self) -> None:
        node = self._any()
        if node.up:
            node.sync()

    def _kill(self) -> None:
        node = self._one()
        if node.up:
            self.world.kill(node.id, self.rng.randint(0, node.high_watermark))

    def _power(self) -> None:
        node = self._one()
        if not node.up:
            return
        if not self._power_cuts and self.profile.power_cuts and self._is_sound():
            self._power_cuts = self.profile.power_cuts
        is_free = self._victim is not None and not self._is_counted_on(node)
        if self._power_cuts or is_free:
            self._power_cuts -= not is_free
            keep = self.rng.randint(node.log.synced_end, node.log.log_end_offset)
            self.world.cut_power(node.id, keep, self.rng.randint(0, node.high_watermark))

    def _is_counted_on(self, node: WalkNode) -> bool:
        """Whether what is committed may rest on this broker's copy."""
        state = self.world.store.state
        return node.id in (*state.isr, *state.elr, *state.last_known_elr)

    def _is_sound(self) -> bool:
        """Whether all replicas are in sync, so that all that was ever committed is on each."""
        store = self.world.store
        if store.doubtful or any(node.lossy for node in self._nodes):
            return False
        return len(store.state.isr) == len(store.state.replicas)

    def _blackout(self) -> None:
        """All lose power; of those who held what is committed, one happens to keep it.

        It holds what is committed by the store, and by each wish that is under way: one granted
        afterwards may forget who was eligible for the sake of members that have lost what they
        had. To keep only such a one is beyond what an ISR can promise without flushing. So it
        is where as many as the minimum outlive their death in the eyes of the store: who is
        seen to die before them leaves an ISR that is large enough without it.
        """
        world = self.world
        held = self._holders()
        if not held:
            return
        keeper = held[int(self.rng.random() * len(held))]
        least = min(world.min_isr, world.controller.min_isr)
        believed = self.rng.sample(self._nodes, self.rng.randrange(least))
        for node in self._nodes:
            log = node.log
            first = log.log_end_offset if node is keeper else log.synced_end
            keep = self.rng.randint(first, log.log_end_offset)
            world.cut_power(node.id, keep, self.rng.randint(0, node.high_watermark))
            if node not in believed:
                world.expire(node.id)
        world.controller.look()

    def _holders(self) -> list[WalkNode]:
        """Brokers that hold every committed record, whether the writes under way succeed or not."""
        world = self.world
        state = world.store.state
        ids = set(state.isr + state.elr)
        for message in world.network + self._delayed:
            if isinstance(message, WriteIsr):
                ids &= {*message.change.after.isr, *message.change.after.elr}
            elif isinstance(message, WriteState):
                ids &= {*message.after.isr, *message.after.elr}
        nodes = [world.nodes[broker] for broker in sorted(ids)]
        return [n for n in nodes if not n.lossy and n.id not in world.store.doubtful]

    def _restart(self) -> None:
        node = self._one()
        if not node.up:
            self.world.restart(node.id)

    def _consume(self) -> None:
        node = self._any()
        if node.up:
            self.world.committed.show_end(node)

    def _move(self) -> None:
        brokers = range(1, self.profile.brokers + 1)
        wanted = [BrokerId(broker) for broker in self.rng.sample(brokers, 3)]
        self.world.controller.move(wanted)

    def _delete(self) -> None:
        node = self._any()
        role = node.role
        if isinstance(role, Leader) and role.term.high_watermark > node.log.log_start_offset:
            node.log.advance_log_start(
                self.rng.randint(node.log.log_start_offset, role.term.high_watermark)
            )

    def _minimum(self) -> None:
        rng, world = self.rng, self.world
        if rng.random() < 0.3:
            world.min_isr = rng.choice((1, 2, 3))
        node = self._any()
        node.set_min_isr(world.min_isr)
