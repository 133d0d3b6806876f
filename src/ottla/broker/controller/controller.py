"""The election of the controller: one broker wins `/controller`, the others watch it (P31)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.controller.active import ActiveController
from ottla.broker.controller.context import RulesOf
from ottla.broker.controller.partition_changes import DecisionLog
from ottla.broker.controller.reachability import Reaches
from ottla.broker.controller.recovery import LeaderRecovery
from ottla.broker.controller.requests import ElectionType, Outcomes, Requests
from ottla.broker.controller.sender import Deliver
from ottla.broker.controller.store_access import Deposed
from ottla.broker.controller.topic_changes import TopicChanges
from ottla.broker.runtime.part import BrokerPart
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Session,
    SessionExpired,
    Set,
    Store,
    StoreError,
    Watch,
)
from ottla.metadata import paths
from ottla.metadata.decisions import Decisions
from ottla.metadata.image import PartitionImage
from ottla.metadata.notices import decode_controller, encode_controller

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1
# The longest that a stopping broker waits for the others to confirm the new leaders.
_CONFIRMING_S = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ControllerStatus:
    """The controller as this broker sees it.

    `controller_id` is -1 while there is no controller; `epoch` is -1 on brokers that are not the
    controller.
    """

    is_active: bool
    controller_id: int
    epoch: int
    # Unclean elections in this controller's term; they may have lost records.
    unclean_elections: int


class Controller(BrokerPart):
    """This broker's part in the election: always a candidate, sometimes the active controller."""

    def __init__(
        self,
        store: Store,
        broker_id: BrokerId,
        settings: BrokerSettings,
        clock: Clock,
        decisions: Decisions,
        rules_of: RulesOf,
        deliver: Deliver,
        reaches: Reaches,
        answers: Reaches,
        on_isolated: Callable[[], None],
    ) -> None:
        """`on_isolated` is called if this controller reaches no other broker."""
        self._store = store
        self._broker_id = broker_id
        self._settings = settings
        self._clock = clock
        self.decisions = decisions
        self._rules_of = rules_of
        self._deliver = deliver
        self._reaches = reaches
        self._answers = answers
        self._on_isolated = on_isolated
        self._session: Session | None = None
        self._active: ActiveController | None = None
        self._requests: Requests | None = None
        self._watches: list[Watch] = []
        self._watch: Watch | None = None
        self._rebalancing: asyncio.Task[None] | None = None
        self._candidacy: asyncio.Task[None] | None = None
        # One attempt at a time: otherwise two would delete each other's node as a leftover.
        self._attempt = asyncio.Lock()
        self._seen = asyncio.Event()
        self._stopped = False
        # The controller known to this broker; None while there is none.
        self.controller_id: BrokerId | None = None

    @property
    def is_active(self) -> bool:
        return self._active is not None

    @property
    def epoch(self) -> int | None:
        """The controller epoch if this broker is the active controller, else None."""
        return None if self._active is None else self._active.epoch

    async def stand(self, session: Session) -> None:
        """Stand for election with a session, the first one or a later one (S16)."""
        self._session = session
        if self._watch is None:
            self._watch = self._store.watch_data(paths.CONTROLLER, self._seen.set)
        await self._stand()
        if self._candidacy is None:
            self._candidacy = asyncio.get_running_loop().create_task(self._follow())

    def stand_down(self) -> None:
        """Resign, and stop being a candidate until `stand` is called after a new registration.

        A broker that gave up its registration because it is cut off may still reach the store. It
        would win again before the other brokers see that there is no controller.
        """
        self._session = None
        self.resign()

    def resign(self) -> None:
        """Stop being the active controller, if this broker is: cancel its watches and jobs."""
        if self._active is None:
            return
        _log.info("resigning as controller of epoch %d", self._active.epoch)
        active, self._active, self._requests = self._active, None, None
        for watch in self._watches:
            watch.cancel()
        self._watches.clear()
        if self._rebalancing is not None:
            self._rebalancing.cancel()
            self._rebalancing = None
        active.stop()
        self.controller_id = None
        self._seen.set()

    async def stop(self) -> None:
        """Stop being a candidate. The node `/controller` disappears with its session."""
        self._stopped = True
        if self._watch is not None:
            self._watch.cancel()
        if self._candidacy is not None:
            self._candidacy.cancel()
        self.resign()

    def status(self) -> ControllerStatus:
        known = self.controller_id
        return ControllerStatus(
            is_active=self.is_active,
            controller_id=-1 if known is None else known,
            epoch=-1 if self.epoch is None else self.epoch,
            unclean_elections=0
            if self._active is None
            else self._active.decision_log.unclean_elections,
        )

    # -- requests to the active controller; all others raise OttlaError(NOT_CONTROLLER)

    async def elect(self, kind: ElectionType, names: Sequence[TopicPartition] | None) -> Outcomes:
        """See `Requests.elect`."""
        unreached: set[BrokerId] = set()
        if kind is ElectionType.PREFERRED:
            unreached = await self._requests_of_active().unreached(names)
        requests = self._requests_of_active()
        return await self._ask(lambda: requests.elect(kind, names, unreached))

    async def reassign(
        self,
        wanted: Mapping[TopicPartition, Sequence[int] | None],
        *,
        may_change_factor: bool = True,
    ) -> Outcomes:
        """See `Requests.reassign`."""
        requests = self._requests_of_active()
        return await self._ask(
            lambda: requests.reassign(wanted, may_change_factor=may_change_factor)
        )

    def moves(self) -> dict[TopicPartition, PartitionImage]:
        """The partitions with a reassignment in progress."""
        return self._requests_of_active().moves()

    async def shut_down(self, broker_id: BrokerId, broker_epoch: int) -> list[TopicPartition]:
        """See `Requests.shut_down`. Waits briefly until all brokers confirm the new leaders.

        Without the wait, a stopping controller could end before it has sent its changes, and
        leaders would wait for a follower that has stopped.
        """
        requests, active = self._requests_of_active(), self._active
        assert active is not None, "checked by _requests_of_active"
        left = await self._ask(lambda: requests.shut_down(broker_id, broker_epoch))
        confirming = [asyncio.ensure_future(s.settled()) for s in active.senders]
        if confirming:
            await asyncio.wait(confirming, timeout=_CONFIRMING_S)
            for waiting in confirming:
                waiting.cancel()
        return left

    def suspect(self, broker_id: BrokerId) -> None:
        """Check at once whether a broker that may have died is registered and reachable."""
        active = self._active
        if active is None:
            return
        active.jobs.once("brokers", active.on_brokers)
        sender = active.senders.get(broker_id)
        if sender is not None:
            # The sender's next request either reaches the broker or is refused.
            sender.brokers()

    def on_rules_changed(self) -> None:
        """Settle all partitions again after a change of election settings.

        Offline partitions may get a leader under the new settings.
        """
        active = self._active
        if active is not None:
            active.jobs.once("settings", active.repair)

    def _requests_of_active(self) -> Requests:
        if self._requests is None:
            raise OttlaError(
                ErrorCode.NOT_CONTROLLER,
                f"this broker is not the controller; broker {self.controller_id} is"
                if self.controller_id is not None
                else "this broker is not the controller; one is being elected, try again",
            )
        return self._requests

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        active = self._active
        assert active is not None, "checked by _requests_of_active"
        try:
            return await active.jobs.ask(work)
        except Deposed:
            raise OttlaError(
                ErrorCode.NOT_CONTROLLER, "another broker has become the controller; ask it"
            ) from None

    # -- election

    async def _follow(self) -> None:
        """Stand for election whenever there may be no controller."""
        while not self._stopped:
            await self._seen.wait()
            self._seen.clear()
            try:
                await self._stand()
            except StoreError as error:
                _log.warning(
                    "cannot take part in the controller election, trying again: %s", error.message
                )
                await asyncio.sleep(_PAUSE_S)
                self._seen.set()
            except Exception:  # noqa: BLE001  # The supervisor of the candidacy.
                _log.exception("standing for controller failed unexpectedly")
                self.resign()
                await asyncio.sleep(_PAUSE_S)

    async def _stand(self) -> None:
        """Become the controller if there is none, else read which broker it is."""
        async with self._attempt:
            await self._stand_alone()

    async def _stand_alone(self) -> None:
        while True:
            node = await self._store.get(paths.CONTROLLER)
            if node is not None:
                self.controller_id = decode_controller(node.data)
                if self.controller_id != self._broker_id:
                    self.resign()
                    return
                if self._active is not None:
                    return
                # This broker won earlier but resigned: delete its node so that another can win.
                await self._store.multi([Delete(paths.CONTROLLER, node.version)])
                continue
            session = self._session
            if session is None or session.expired or self._stopped:
                return
            self.resign()
            try:
                epoch = await self._win(session)
            except (BadVersion, NodeExists, NoNode):
                continue
            except SessionExpired:
                return
            if self._session is not session:
                # This broker stood down meanwhile, so the next round deletes the node.
                continue
            await self._become_active(epoch)
            return

    async def _win(self, session: Session) -> int:
        """Raise the controller epoch and create `/controller` in one transaction."""
        before = await self._store.get(paths.CONTROLLER_EPOCH)
        assert before is not None, "made before anything else"
        epoch = before.version + 1
        name = encode_controller(self._broker_id, self._clock.now_ms())
        await self._store.multi(
            [
                Set(paths.CONTROLLER_EPOCH, str(epoch).encode(), before.version),
                Create(paths.CONTROLLER, name, session),
            ]
        )
        return epoch

    async def _become_active(self, epoch: int) -> None:
        """Start as active controller (P32).

        The steps are: watches, context, partition states, requests to all brokers, then the rest.
        """
        _log.info("broker %d is the controller of epoch %d", self._broker_id, epoch)
        store = self._store
        active = ActiveController(
            store,
            self._broker_id,
            epoch,
            DecisionLog(self._broker_id, self._clock, self.decisions),
            self._rules_of,
            self._deliver,
            self._reaches,
            self._answers,
            session_ms=self._settings.integer("broker.session.timeout.ms"),
            on_deposed=self.resign,
            on_isolated=self._on_isolated,
        )
        requests = Requests(active, apart=self._settings.keeps_apart)
        recovery = LeaderRecovery(active)
        topics = TopicChanges(
            active,
            self._clock,
            lambda: self._settings.integer("delete.topic.trash.ms"),
            deletes=self._settings.flag("delete.topic.enable"),
        )
        jobs = active.jobs
        data = (
            (paths.REASSIGN_PARTITIONS, "moves", requests.on_reassign_node),
            (paths.PREFERRED_ELECTION, "preferred", requests.on_preferred_node),
        )
        children = (
            (paths.TOPICS, "topics", topics.on_topics),
            (paths.DELETE_TOPICS, "deletions", topics.on_deletions),
            (paths.BROKER_IDS, "brokers", active.on_brokers),
            (paths.ISR_CHANGES, "announcements", topics.on_announcements),
            (paths.LOG_DIR_EVENTS, "log dir events", topics.on_log_dir_events),
        )
        for path, name, job in data:
            self._watches.append(store.watch_data(path, _later(active, name, job)))
        for path, name, job in children:
            self._watches.append(store.watch_children(path, _later(active, name, job)))
        self._active, self._requests = active, requests
        self.controller_id = self._broker_id
        try:
            await active.load()
        except Deposed:
            self.resign()
            return
        except StoreError:
            # A controller with half of the state must not decide. The next attempt starts over.
            self.resign()
            raise
        if self._active is not active:
            return
        active.follow_brokers()
        self._schedule_rebalance(active, requests)
        jobs.once("marks", topics.mark_topics)
        jobs.once("deletions", topics.on_deletions)
        jobs.once("announcements", topics.on_announcements)
        jobs.once("log dir events", topics.on_log_dir_events)
        jobs.once("unfinished moves", lambda: active.changes.complete_moves(active.context.names()))
        jobs.once("moves", requests.on_reassign_node)
        jobs.once("preferred", requests.on_preferred_node)
        recovery.soon()
        jobs.start()

    def _schedule_rebalance(self, active: ActiveController, requests: Requests) -> None:
        if not self._settings.flag("auto.leader.rebalance.enable"):
            return
        interval_s = self._settings.integer("leader.imbalance.check.interval.seconds")
        self._rebalancing = asyncio.get_running_loop().create_task(
            self._rebalance(active, requests, interval_s)
        )

    async def _rebalance(
        self, active: ActiveController, requests: Requests, interval_s: float
    ) -> None:
        percentage = self._settings.integer("leader.imbalance.per.broker.percentage")
        while True:
            await asyncio.sleep(interval_s)
            away = requests.away(percentage)
            if away:
                # Brokers are asked outside the queue, so that a silent broker does not block it.
                unreached = await requests.unreached(away)
                active.jobs.once("rebalance", partial(requests.rebalance, percentage, unreached))


def _later(
    active: ActiveController, name: str, job: Callable[[], Awaitable[None]]
) -> Callable[[], None]:
    return lambda: active.jobs.once(name, job)
