"""Finds registered brokers that the controller cannot reach, and elects other leaders.

A registration shows that a broker reaches the store, not that the controller reaches the broker.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.ids import BrokerId
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.partition_changes import PartitionChanges
from ottla.broker.controller.sender import Senders
from ottla.metadata.image import BrokerImage

# Returns whether a broker can be reached, or answers, within the given seconds.
Reaches = Callable[[BrokerImage, float], Awaitable[bool]]


class Silence:
    """Tracks the brokers that have not answered a request yet."""

    def __init__(
        self, reaches: Reaches, patience_s: float, on_silent: Callable[[BrokerImage], None]
    ) -> None:
        """`on_silent` is called if a broker neither answers nor is reached within `patience_s`.

        It is called once until the broker answers again.
        """
        self._reaches = reaches
        self._half_s = patience_s / 2
        self._on_silent = on_silent
        self._timers: dict[BrokerId, asyncio.TimerHandle] = {}
        self._asking: dict[BrokerId, asyncio.Task[None]] = {}
        # Brokers reported as silent that have not answered since.
        self._silent: dict[BrokerId, None] = {}

    def begin(self, broker: BrokerImage) -> None:
        """Start tracking a broker, because a request is being sent to it."""
        if not any(broker.id in held for held in (self._timers, self._asking, self._silent)):
            self._wait(broker)

    def end(self, broker_id: BrokerId) -> None:
        """Stop tracking a broker: it has answered, or nothing is sent to it any more."""
        timer = self._timers.pop(broker_id, None)
        if timer is not None:
            timer.cancel()
        asking = self._asking.pop(broker_id, None)
        if asking is not None:
            asking.cancel()
        self._silent.pop(broker_id, None)

    def stop(self) -> None:
        """Stop tracking all brokers."""
        for broker_id in [*self._timers, *self._asking]:
            self.end(broker_id)

    async def reached(self, brokers: Iterable[BrokerImage]) -> set[BrokerId]:
        """Return the brokers that can be reached within half of the patience."""
        return await those_of(brokers, self._reaches, self._half_s)

    def _wait(self, broker: BrokerImage) -> None:
        loop = asyncio.get_running_loop()
        self._timers[broker.id] = loop.call_later(self._half_s, self._doubt, broker)

    def _doubt(self, broker: BrokerImage) -> None:
        del self._timers[broker.id]
        self._asking[broker.id] = asyncio.get_running_loop().create_task(self._ask(broker))

    async def _ask(self, broker: BrokerImage) -> None:
        is_there = await self._reaches(broker, self._half_s)
        del self._asking[broker.id]
        if is_there:
            # The broker is slow but reachable, so go on waiting for its answer.
            self._wait(broker)
        else:
            self._silent[broker.id] = None
            self._on_silent(broker)


async def those_of(
    brokers: Iterable[BrokerImage], reaches: Reaches, within_s: float
) -> set[BrokerId]:
    """Return the ids of the reachable brokers; all are tried at the same time."""
    tried = list(brokers)
    found = await asyncio.gather(*(reaches(broker, within_s) for broker in tried))
    return {broker.id for broker, is_reached in zip(tried, found, strict=True) if is_reached}


_log = logging.getLogger(__name__)


class Reachability:
    """Judges which brokers are reachable, in one controller epoch.

    `on_isolated` is called when several brokers are registered but none can be reached: then this
    broker is the one that is cut off. `reaches` tries a connection to a broker, `answers` tries a
    request. `fence` ends a registration.
    """

    def __init__(
        self,
        own_id: BrokerId,
        jobs: Jobs,
        changes: PartitionChanges,
        senders: Senders,
        reaches: Reaches,
        answers: Reaches,
        *,
        patience_ms: int,
        fence: Callable[[BrokerImage, str], Awaitable[None]],
        on_isolated: Callable[[], None],
    ) -> None:
        self._own_id = own_id
        self._jobs = jobs
        self._changes = changes
        self._senders = senders
        self._silence = Silence(reaches, patience_ms / 1000, self._on_silent)
        self._answers = answers
        self._patience_s = patience_ms / 1000
        self._fence = fence
        self._on_isolated = on_isolated
        self._judging: dict[BrokerId, asyncio.Task[None]] = {}

    def sending(self, broker: BrokerImage) -> None:
        """Note that a request is being sent to a broker."""
        if broker.id != self._own_id:
            self._silence.begin(broker)

    def answered(self, broker: BrokerImage) -> None:
        """Note that a broker has answered. If it was silent, it may lead again."""
        self._silence.end(broker.id)
        context = self._changes.context
        if broker.id not in context.silent:
            return
        del context.silent[broker.id]
        cause = f"broker {broker.id} can be reached again"
        _log.info("controller: %s", cause)
        self._jobs.once(
            f"reached {broker.id}",
            lambda: self._changes.settle(context.hosted_by({broker.id}), cause),
        )

    def forget(self, broker_id: BrokerId) -> None:
        """Stop judging a broker, because its registration has ended."""
        self._silence.end(broker_id)

    def stop(self) -> None:
        """Stop, because the controller epoch is over."""
        self._silence.stop()
        for judging in self._judging.values():
            judging.cancel()

    async def answering(self, brokers: Iterable[BrokerId]) -> set[BrokerId]:
        """Return those of `brokers` that are registered and answer now."""
        return await those_of(self._known(brokers), self._answers, self._patience_s / 2)

    def _known(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        known = self._changes.context.brokers
        return [known[broker] for broker in brokers if broker in known]

    def _on_silent(self, broker: BrokerImage) -> None:
        loop = asyncio.get_running_loop()
        self._judging[broker.id] = loop.create_task(self._judge(broker))

    async def _judge(self, broker: BrokerImage) -> None:
        """Decide which side is cut off: the silent broker or the controller."""
        context = self._changes.context
        others = [other for other in context.brokers if other not in (broker.id, self._own_id)]
        reached = await self._silence.reached(self._known(others))
        del self._judging[broker.id]
        if others and not reached:
            _log.warning("the controller reaches no other broker: another broker must take over")
            self._silence.end(broker.id)
            self._on_isolated()
            return
        context.silent[broker.id] = None
        self._jobs.once(f"silent {broker.id}", lambda: self._give_up(broker))

    async def _give_up(self, broker: BrokerImage) -> None:
        """Fence a silent broker if it was elected leader of partitions but has not confirmed it.

        Otherwise it keeps the partitions that it led before, since followers and clients may reach
        it.
        """
        context = self._changes.context
        sender = self._senders.get(broker.id)
        if sender is None or sender.broker.epoch != broker.epoch:
            return
        states = {name: context.partition(name) for name in sender.unsent()}
        given = [n for n, state in states.items() if state and state.leader == broker.id]
        _log.warning(
            "broker %d is registered and does not answer the controller: it is given nothing to "
            "lead, and %d partition(s) of which it does not know that it leads them are taken "
            "from it; look at the network between them",
            broker.id,
            len(given),
        )
        if given:
            await self._fence(broker, f"broker {broker.id} cannot be reached by the controller")
