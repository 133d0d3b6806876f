"""A world that a script moves: one message, one crash, one election at a time.

After each move all invariants are checked. What a script expects is a `Violation` too where it
fails, so that the same script distinguishes the shipped cores from a mutant.
"""

from typing import TypeVar

from ottla.base.ids import BrokerId
from ottla.controller import election
from ottla.metadata.image import PartitionImage
from ottla.replica.follower import Follower
from ottla.replica.leader import Leader
from verify.walk.messages import (
    FetchedRecords,
    FollowerFetch,
    Message,
    Parting,
    ReadAnswer,
    ReadRequest,
    Refused,
    State,
    WriteIsr,
    WriteOutcome,
    WriteState,
)
from verify.walk.node import LAG_MS_MAX, WalkNode
from verify.walk.violation import Violation
from verify.walk.world import Build, WalkWorld

M = TypeVar("M", bound=Message)
ANSWERS = (FetchedRecords, Parting, Refused)
# More rounds of fetching than any script's log is long.
ROUNDS = 24


class Stage:
    """Brokers are named by their numbers. Nothing arrives unless the script says so."""

    def __init__(
        self,
        build: Build,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        brokers: int = 3,
        min_isr: int = 2,
        group_commit: bool = False,
        silence_ms: int | None = None,
    ) -> None:
        self.world = WalkWorld(
            build,
            replicas=replicas,
            brokers=brokers,
            min_isr=min_isr,
            group_commit=group_commit,
            silence_ms=silence_ms,
            is_punctual=True,
        )
        self._values = 0
        self.tell(*range(1, brokers + 1))

    # ------------------------------------------------------------ looking

    @property
    def state(self) -> PartitionImage:
        """What the store holds."""
        return self.world.store.state

    def node(self, broker: int) -> WalkNode:
        """A broker."""
        return self.world.nodes[BrokerId(broker)]

    def leader(self, broker: int) -> Leader:
        """A broker's role as a leader."""
        role = self.node(broker).role
        self.expect(isinstance(role, Leader), f"broker {broker} leads")
        assert isinstance(role, Leader)
        return role

    def follower(self, broker: int) -> Follower:
        """A broker's role as a follower."""
        role = self.node(broker).role
        self.expect(isinstance(role, Follower), f"broker {broker} follows")
        assert isinstance(role, Follower)
        return role

    def epochs(self, broker: int) -> list[int]:
        """The epochs of a broker's records."""
        return [epoch for epoch, _ in self.node(broker).log.records]

    def end(self, broker: int) -> int:
        """Where a broker's log ends."""
        return self.node(broker).log.log_end_offset

    @property
    def committed(self) -> int:
        """How many records were ever acknowledged."""
        return len(self.world.committed.records)

    def expect(self, holds: bool, what: str) -> None:
        """Something must hold here."""
        if not holds:
            raise Violation(f"expected: {what}")

    def expect_equal(self, *brokers: int) -> None:
        """These brokers must have the same records."""
        logs = [self.node(broker).log.records for broker in brokers]
        self.expect(all(log == logs[0] for log in logs), f"{brokers} have equal logs: {logs}")

    # ------------------------------------------------------------ messages

    def take(self, kind: type[M], *, target: int | None = None, source: int | None = None) -> M:
        """Hold the first message of a kind back, to deliver it later or never."""
        for message in self.world.network:
            if isinstance(message, kind) and _fits(message, target, source):
                self.world.network.remove(message)
                return message
        raise Violation(f"expected: a {kind.__name__} under way")

    def has(self, kind: type[Message], *, target: int | None = None) -> bool:
        """Whether a message of a kind is under way."""
        return any(isinstance(m, kind) and _fits(m, target, None) for m in self.world.network)

    def arrive(self, message: Message) -> None:
        """Deliver a message that was held back, once or again."""
        self.world.now_ms += 1
        self.world.deliver(message)
        self.check()

    def let(
        self, *kinds: type[Message], target: int | None = None, source: int | None = None
    ) -> bool:
        """Deliver the first message of these kinds; False where there is none."""
        for message in self.world.network:
            if isinstance(message, kinds) and _fits(message, target, source):
                self.world.network.remove(message)
                self.arrive(message)
                return True
        return False

    def drop(self, *kinds: type[Message]) -> None:
        """Lose all messages of these kinds."""
        self.world.network[:] = [m for m in self.world.network if not isinstance(m, kinds)]

    def tell(self, *brokers: int) -> None:
        """Deliver the controller's orders to these brokers, and lose the rest."""
        orders = [m for m in self.world.network if isinstance(m, State)]
        self.drop(State)
        for order in orders:
            if order.target in brokers:
                self.arrive(order)

    def check(self) -> None:
        """All invariants."""
        self.world.committed.check_all()

    # ------------------------------------------------------------ records

    def produce(self, broker: int, count: int = 1) -> None:
        """Append to a leader, in the leader epoch that it believes to be current."""
        for _ in range(count):
            self._values += 1
            self.node(broker).produce(self._values)
            self.check()

    def ask(self, broker: int) -> FollowerFetch:
        """A follower sends a fetch, which is held back."""
        self._flush(broker)
        self.node(broker).fetch()
        return self.take(FollowerFetch, source=broker)

    def pull(self, broker: int, rounds: int = 1) -> None:
        """A follower fetches and hears the answer."""
        for _ in range(rounds):
            self.world.now_ms += 1
            self._flush(broker)
            fetch = self.node(broker).fetch()
            if fetch is not None:
                self.settle_fetches(broker)

    def settle_fetches(self, broker: int) -> None:
        """What a follower has asked is heard and answered."""
        while self.let(FollowerFetch, source=broker) or self.let(*ANSWERS, target=broker):
            pass

    def catch_up(self, *brokers: int) -> None:
        """Followers fetch until they have all, and know what is committed."""
        for _ in range(ROUNDS):
            for broker in brokers:
                self.pull(broker)

    def _flush(self, broker: int) -> None:
        if self.world.group_commit:
            self.node(broker).sync()

    # ------------------------------------------------------------ ISR and elections

    def settle_isr(self) -> None:
        """Carry out the writes of a leader, and deliver the results."""
        while self.let(WriteIsr, WriteOutcome, ReadRequest, ReadAnswer):
            pass

    def lag(self, broker: int) -> None:
        """A leader looks at its followers after a long time."""
        self.wait(LAG_MS_MAX)
        self.look(broker)

    def wait(self, for_ms: int) -> None:
        """Nothing happens for so long."""
        self.world.now_ms += for_ms

    def look(self, broker: int) -> None:
        """A leader looks at its followers now."""
        self.node(broker).tick(self.world.now_ms)
        self.check()

    def plan(self, *told: int) -> None:
        """The controller reads, decides and writes, until done; it sends to the brokers named."""
        for _ in range(4):
            self.world.controller.look()
            if self.world.controller.plan() is None:
                break
            self.let(WriteState)
        self.tell(*told)

    def elect(self, broker: int, *told: int) -> None:
        """A member of the ISR gets the next term, as a preferred or planned election does."""
        after = election.led(self.state, BrokerId(broker), self.world.store.live)
        self.write(after)
        self.tell(*told)

    def write(self, after: PartitionImage) -> None:
        """The controller writes a state."""
        after = after._replace(version=self.state.version)
        self.world.send(WriteState(self.world.store.controller_epoch, after, ()))
        self.let(WriteState)

    def inform(self, *brokers: int) -> None:
        """The controller sends these brokers the state and the brokers that are alive."""
        self.world.controller.look()
        nodes = tuple(self.node(broker) for broker in brokers)
        self.world.tell_live(nodes)
        self.world.tell_state(nodes)
        self.tell(*brokers)

    # ------------------------------------------------------------ sessions, crashes

    def expire(self, *brokers: int) -> None:
        """The store ends sessions; their brokers do not know yet."""
        for broker in brokers:
            self.world.expire(broker)
        self.check()

    def leave(self, broker: int, *told: int) -> None:
        """A session ends and the controller acts on it."""
        self.expire(broker)
        self.plan(*told)

    def register(self, broker: int) -> None:
        """A living broker notices that its session is over, and begins another."""
        self.node(broker).register()
        self.inform(*self.world.nodes)

    def kill(self, broker: int) -> None:
        """Kill -9, with the high watermark checkpointed just before."""
        self.world.kill(broker, self.node(broker).high_watermark)
        self.check()

    def cut_power(self, broker: int, keep: int) -> None:
        """What was not synced is lost but for `keep` records."""
        self.world.cut_power(broker, keep, 0)
        self.check()

    def restart(self, broker: int, *told: int) -> None:
        """A broker comes back, and the controller acts on it and sends to the brokers named."""
        self.world.restart(broker)
        self.check()
        self.plan()
        self.inform(*told)

    def heal(self, *brokers: int) -> None:
        """All faults are over: these brokers end up equal and in sync."""
        for _ in range(3):
            self.plan()
            self.inform(*brokers)
            self.catch_up(*brokers)
            self.settle_isr()
        self.expect_equal(*brokers)
        self.expect(set(self.state.isr) >= set(brokers), f"{brokers} are in sync: {self.state}")


def _fits(message: Message, target: int | None, source: int | None) -> bool:
    return (target is None or getattr(message, "target", None) == target) and (
        source is None or getattr(message, "source", None) == source
    )
