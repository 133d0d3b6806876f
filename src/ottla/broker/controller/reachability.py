"""Finds brokers that the controller cannot reach, and elects other leaders in their place.

A registration says that a broker reaches the store, not that the controller reaches the broker.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from ottla.base.ids import BrokerId
from ottla.broker.controller.jobs import Jobs
from ottla.broker.controller.partition_changes import PartitionChanges
from ottla.broker.controller.senders import Senders
from ottla.broker.controller.silence import Reaches, Silence, those_of
from ottla.metadata.image import BrokerImage

_log = logging.getLogger(__name__)


class Reachability:
    """Judges which brokers are reachable, in one controller epoch.

    `on_isolated` is called when no other broker can be reached, though several are registered:
    then this broker is the one that is cut off. `reaches` opens a connection to a broker,
    `answers` sends it a request. `fence` ends a registration.
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
        """A request is on its way to a broker."""
        if broker.id != self._own_id:
            self._silence.begin(broker)

    def answered(self, broker: BrokerImage) -> None:
        """A broker has answered; if it was silent, it may lead again."""
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
        """Stop judging this registration of a broker, as nothing is sent to it any more."""
        self._silence.end(broker_id)

    def stop(self) -> None:
        """Stop, because the controller epoch is over."""
        self._silence.stop()
        for judging in self._judging.values():
            judging.cancel()

    async def answering(self, brokers: Iterable[BrokerId]) -> set[BrokerId]:
        """The members of `brokers` that are registered and answer now."""
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
        """Elect other leaders for partitions whose silent leader has not confirmed its election.

        It keeps those that it led before: followers and clients may well reach it.
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
