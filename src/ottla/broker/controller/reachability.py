"""Who can be told anything, and what becomes of those who cannot.

A registration says that a broker reaches the store, and nothing of whether this one reaches it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.base.ids import BrokerId
from ottla.broker.controller.silence import Reaches, Silence, those_of
from ottla.metadata.image import BrokerImage

if TYPE_CHECKING:
    from ottla.broker.controller.office import Office

_log = logging.getLogger(__name__)


class Reachability:
    """Of the brokers of one term of office.

    `on_isolated` is called when no other broker can be reached, though several are registered:
    it is this one that is cut off. `reaches` tries the way to a broker, `answers` asks itself.
    """

    def __init__(
        self,
        office: "Office",
        reaches: Reaches,
        answers: Reaches,
        *,
        patience_ms: int,
        on_isolated: Callable[[], None],
    ) -> None:
        self._office = office
        self._silence = Silence(reaches, patience_ms / 1000, self._on_silent)
        self._answers = answers
        self._patience_s = patience_ms / 1000
        self._on_isolated = on_isolated
        self._judging: dict[BrokerId, asyncio.Task[None]] = {}

    def sending(self, broker: BrokerImage) -> None:
        """Something is on its way to a broker."""
        self._silence.begin(broker)

    def answered(self, broker: BrokerImage) -> None:
        """A broker has answered: if it was silent, it is one of the living again."""
        self._silence.end(broker.id)
        office = self._office
        if broker.id not in office.context.silent:
            return
        del office.context.silent[broker.id]
        cause = f"broker {broker.id} can be reached again"
        _log.info("controller: %s", cause)
        office.jobs.once(
            f"heard of {broker.id}",
            lambda: office.settle(office.context.hosted_by({broker.id}), cause),
        )

    def forget(self, broker_id: BrokerId) -> None:
        """Nothing is sent any more to this life of a broker."""
        self._silence.end(broker_id)

    def stop(self) -> None:
        """The term is over."""
        self._silence.stop()
        for judging in self._judging.values():
            judging.cancel()

    async def answering(self, brokers: Iterable[BrokerId]) -> set[BrokerId]:
        """Of `brokers`, those that are registered and answer now."""
        return await those_of(self._known(brokers), self._answers, self._patience_s / 2)

    def _known(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        known = self._office.context.brokers
        return [known[broker] for broker in brokers if broker in known]

    def _on_silent(self, broker: BrokerImage) -> None:
        loop = asyncio.get_running_loop()
        self._judging[broker.id] = loop.create_task(self._judge(broker))

    async def _judge(self, broker: BrokerImage) -> None:
        """Find out who is cut off: a broker that cannot be told anything, or rather this one."""
        office = self._office
        own_id = office.letterhead.controller_id
        others = [other for other in office.context.brokers if other not in (broker.id, own_id)]
        reached = await self._silence.reached(self._known(others))
        del self._judging[broker.id]
        if others and not reached:
            _log.warning("the controller reaches no other broker: another is to take office")
            self._silence.end(broker.id)
            self._on_isolated()
            return
        office.context.silent[broker.id] = None
        office.jobs.once(f"silent {broker.id}", lambda: self._give_up(broker))

    async def _give_up(self, broker: BrokerImage) -> None:
        """Have others lead what a silent broker was given to lead and does not know of.

        What it led before it leads on: followers and clients may well reach it.
        """
        office = self._office
        sender = office.senders.get(broker.id)
        if sender is None or sender.broker.epoch != broker.epoch:
            return
        states = {name: office.context.partition(name) for name in sender.untold()}
        given = [n for n, state in states.items() if state and state.leader == broker.id]
        _log.warning(
            "broker %d is registered and cannot be told anything: it is given nothing to lead, "
            "and %d partition(s) of which it does not know that it leads them are taken from it",
            broker.id,
            len(given),
        )
        if given:
            await office.fence(broker, f"broker {broker.id} cannot be reached by the controller")
