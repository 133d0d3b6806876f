"""The world of the walk: brokers, network, store, controller, and what must hold of them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.ids import BrokerId
from ottla.metadata.image import PartitionImage
from ottla.replica.leader import Leader
from verify.walk.controller import WalkController
from verify.walk.invariants import Committed
from verify.walk.messages import (
    Message,
    ReadAnswer,
    ReadRequest,
    State,
    WriteIsr,
    WriteOutcome,
    WriteState,
)
from verify.walk.node import HANDLERS, WalkNode
from verify.walk.store import WalkStore


@dataclass(frozen=True, slots=True)
class Build:
    """What a world is made of; a mutant replaces some of it."""

    node: type[WalkNode] = WalkNode
    store: type[WalkStore] = WalkStore
    controller: type[WalkController] = WalkController


SHIPPED = Build()


class WalkWorld:
    """Everything there is, and nothing that happens by itself: a walk or a script moves it."""

    def __init__(
        self,
        build: Build = SHIPPED,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        brokers: int = 3,
        min_isr: int = 2,
        group_commit: bool = False,
        leader: int | None = None,
        silence_ms: int | None = None,
        is_punctual: bool = False,
    ) -> None:
        """`is_punctual`: leaders look at their followers by the true time, and are judged by it."""
        self.build = build
        self.silence_ms = silence_ms
        self.is_punctual = is_punctual
        self.now_ms = 1000
        self.min_isr = min_isr
        self.group_commit = group_commit
        # How often each event happened; a walk that never sees one does not test it.
        self.seen: Counter[str] = Counter()
        self.network: list[Message] = []
        ids = tuple(BrokerId(replica) for replica in replicas)
        first = BrokerId(leader) if leader is not None else ids[0]
        state = PartitionImage(first, 0, ids, ids, leader_broker_epoch=1)
        self.store = build.store(state, self._on_store_change)
        self.store.leaders[0] = first
        self.nodes: dict[BrokerId, WalkNode] = {}
        for number in range(1, brokers + 1):
            self.nodes[BrokerId(number)] = build.node(self, BrokerId(number))
        self._everyone = tuple(self.nodes.values())
        self.committed = Committed(self)
        self._handlers: dict[type, Callable[[Message], None]] = {
            WriteIsr: self._on_write_isr,  # type: ignore[dict-item]
            WriteState: self._on_write_state,  # type: ignore[dict-item]
            ReadRequest: self._on_read_request,  # type: ignore[dict-item]
        }
        self.controller = build.controller(self)
        self.tell_live()
        self.tell_state(self._everyone)

    # ------------------------------------------------------------ network

    def send(self, message: Message) -> None:
        """Put a message on its way."""
        self.network.append(message)

    def deliver(self, message: Message) -> None:
        """A message arrives. What is for a dead broker is lost."""
        handler = self._handlers.get(message.__class__)
        if handler is not None:
            handler(message)
            return
        node = self.nodes[message.target]  # type: ignore[union-attr]
        if node.up:
            getattr(node, HANDLERS[message.__class__])(message)

    def lose(self, message: Message) -> None:
        """A message is lost; a sender that waits for the store gets an unknown result."""
        if isinstance(message, WriteIsr):
            self.send(
                WriteOutcome(message.source, message.broker_epoch, message.change, None, None)
            )
        elif isinstance(message, WriteOutcome):
            self.send(message._replace(version=None, rejection=None))
        elif isinstance(message, ReadRequest):
            self.send(message)
        elif isinstance(message, ReadAnswer):
            self.send(ReadRequest(message.target, message.broker_epoch))

    def tell_state(self, nodes: tuple[WalkNode, ...]) -> None:
        """The controller sends the partition's state to the registrations it knows."""
        state = self.store.state
        for node in nodes:
            epoch = self.controller.live.get(node.id)
            if epoch is not None:
                self.network.append(State(node.id, epoch, self.controller.epoch, state))

    def tell_live(self, nodes: tuple[WalkNode, ...] | None = None) -> None:
        """Brokers get the list of live brokers; the one they had may be old."""
        for node in nodes or self._everyone:
            node.registration.live = dict(self.store.live)

    # ------------------------------------------------------------ store

    def _on_write_isr(self, message: WriteIsr) -> None:
        result = self.store.write_isr(message)
        version = result if isinstance(result, int) else None
        rejection = None if isinstance(result, int) else result
        if rejection is not None:
            self.seen[f"isr change refused: {rejection.name}"] += 1
        else:
            self.seen["isr change"] += 1
        self.send(
            WriteOutcome(message.source, message.broker_epoch, message.change, version, rejection)
        )

    def _on_write_state(self, message: WriteState) -> None:
        if self.store.write_state(message):
            self.tell_state(self._everyone)
        else:
            self.seen["controller's write refused"] += 1

    def _on_read_request(self, message: ReadRequest) -> None:
        self.send(ReadAnswer(message.source, message.broker_epoch, self.store.state))

    def _on_store_change(self) -> None:
        self.committed.on_candidates()

    # ------------------------------------------------------------ what happens to brokers

    def kill(self, broker: int, high_watermark: int = 0) -> None:
        """A process dies (kill -9): the page cache stays."""
        self.seen["kill"] += 1
        self.nodes[BrokerId(broker)].crash(high_watermark, None)

    def cut_power(self, broker: int, keep: int, high_watermark: int = 0) -> None:
        """What was not synced is lost, but for `keep` records."""
        self.seen["power cut"] += 1
        self.nodes[BrokerId(broker)].crash(high_watermark, keep)

    def restart(self, broker: int) -> None:
        """A broker comes back; the controller may not have noticed that it was away."""
        self.nodes[BrokerId(broker)].restart()
        self.committed.on_candidates()

    def expire(self, broker: int) -> None:
        """The store ends a session. A living broker does not know yet."""
        self.store.expire(BrokerId(broker))

    def fail_over_controller(self) -> None:
        """Another broker is the controller; writes of the last one may be under way."""
        self.store.controller_epoch += 1
        self.controller = self.build.controller(self)

    # ------------------------------------------------------------ what must hold

    def on_visible(self, node: WalkNode, high_watermark: int) -> None:
        """A high watermark rose: records below it can be read, and are acknowledged by a leader."""
        if isinstance(node.role, Leader):
            self.committed.commit(node, high_watermark)
        else:
            self.committed.show(node, high_watermark)

    def on_appended(self, node: WalkNode) -> None:
        """A follower appended."""
        self.committed.check_end(node)

    def on_truncated(self, node: WalkNode, last_epoch: int) -> None:
        """A follower cut its log, which ended in `last_epoch` before."""
        self.seen["truncation"] += 1
        if last_epoch - node.log.last_epoch > 1:
            self.seen["truncation over several epochs"] += 1
        self.committed.on_candidates()
