"""This broker's session and registration, and how it registers again.

A registration ends with the session, or when the controller ends it because the broker could not
be reached. Either way the broker first gives up all leadership, then registers again with a new
broker epoch, and gets its roles from the controller (S16).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.base.clock import Clock
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.cluster.old_session import (
    NotedSession,
    OldSessionWait,
    SessionNote,
    duplicate,
    noted,
)
from ottla.broker.cluster.registration import check_registration, register
from ottla.coordination.interface.store import (
    Delete,
    NodeExists,
    Session,
    SessionExpired,
    Store,
    StoreError,
    StoreUnavailable,
    Watch,
)
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage

_log = logging.getLogger(__name__)

_PAUSE_S = 0.1
# At startup the broker waits this much longer than one lease for the store's answer.
_MARGIN_MS = 2_000
# How long a broker that gave up its registration waits before it registers again.
_ASIDE_S = 1.0


class BrokerMembership:
    """Keeps this broker registered from `join` to `leave`.

    `on_lost` is called when the registration is lost, and gives up leadership at once. `on_joined`
    is called with the session after each registration.
    """

    def __init__(
        self,
        store: Store,
        fence: ControllerFence,
        clock: Clock,
        lease_ms: int,
        boot_id: str,
        *,
        note: SessionNote,
        on_lost: Callable[[], None],
        on_joined: Callable[[Session], Awaitable[None]],
    ) -> None:
        self._store = store
        self._fence = fence
        self._clock = clock
        self._lease_ms = lease_ms
        self._boot_id = boot_id
        self._note = note
        self._on_lost = on_lost
        self._on_joined = on_joined
        self._broker: BrokerImage | None = None
        self._watch: Watch | None = None
        self._doubt = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._left = False
        # Whether the registration was given up, so that another broker becomes controller first.
        self._stands_aside = False
        self.session: Session | None = None

    async def join(self, broker: BrokerImage, *, clean: bool) -> int:
        """Register and stay registered; return the broker epoch.

        `clean` is True if no record was lost since the last registration. If the store does not
        answer, the broker retries for one lease. If a session of its last run still exists, the
        broker waits for as long as the store may take to end it. Raises OttlaError
        (DUPLICATE_BROKER_REGISTRATION), StoreError.
        """
        self._broker = broker
        self._watch = self._store.watch_data(paths.broker(broker.id), self._doubt.set)
        session, epoch = await self._join(broker, clean=clean)
        self._keeper = asyncio.get_running_loop().create_task(self._keep())
        # Call it in the turn in which the registration is known, because LeaderAndIsr may follow at
        # once.
        await self._on_joined(session)
        await self._note.write((noted(session),))
        return epoch

    async def _join(self, broker: BrokerImage, *, clean: bool) -> tuple[Session, int]:
        past = self._note.read()
        await self._end(past)
        began_ms = self._clock.monotonic_ms()
        answered_ms = began_ms
        waits = OldSessionWait(broker, began_ms)
        while True:
            try:
                session = self.session
                if session is None or session.expired:
                    session = await self._open_session()
                    past = (*past, noted(session))
                    # Write the note before registering, so that the broker recognises its node
                    # after a crash.
                    await self._note.write(past)
                epoch = await self._register_after(past, session, broker, waits, clean=clean)
                if epoch is not None:
                    waits.end(self._clock.monotonic_ms())
                    return session, epoch
                answered_ms = self._clock.monotonic_ms()
            except (StoreUnavailable, SessionExpired) as error:
                now_ms = self._clock.monotonic_ms()
                # After an outage, the store restarts the leases of all sessions.
                waits.begin_anew(now_ms)
                if now_ms - answered_ms >= self._lease_ms + _MARGIN_MS:
                    raise
                _log.warning("registering this broker: %s", error.message)
            await asyncio.sleep(_PAUSE_S)

    async def _end(self, past: tuple[NotedSession, ...]) -> None:
        """End past sessions. Their process is dead, because this one holds the folder's lock."""
        for found in past:
            if found.credential:
                try:
                    await self._store.end_session(found.credential)
                except StoreError as error:
                    _log.warning(
                        "cannot end this broker's last session, waiting until it expires: %s",
                        error.message,
                    )

    async def _register_after(
        self,
        past: tuple[NotedSession, ...],
        session: Session,
        broker: BrokerImage,
        waits: OldSessionWait,
        *,
        clean: bool,
    ) -> int | None:
        """Register and return the broker epoch.

        Return None while the node of one of the `past` sessions of this broker exists.
        """
        try:
            return await self._register(session, clean=clean)
        except NodeExists:
            node = await self._store.get(paths.broker(broker.id))
            if node is None:
                return None
            if node.owner not in [found.id for found in past]:
                raise duplicate(broker, node) from None
            waits.check(node, session.ends_within_ms, self._clock.monotonic_ms())
            return None

    def retire(self) -> None:
        """Stop registering again, because the broker is stopping."""
        self._left = True
        if self._watch is not None:
            self._watch.cancel()
        if self._keeper is not None:
            self._keeper.cancel()

    async def leave(self) -> None:
        """End the session, so that the other brokers know at once that this one has stopped."""
        self.retire()
        if self.session is not None:
            await self.session.close()

    async def withdraw(self) -> None:
        """Give up the registration, and with it all leadership, and register again.

        A broker that reaches the store but is cut off from the other brokers calls this, so that
        other leaders are elected.
        """
        if self._left or self._stands_aside or self._broker is None:
            return
        self._stands_aside = True
        broker_id = self._broker.id
        _log.warning(
            "the followers are registered but none fetches from this broker: it gives up its "
            "leaderships; look at the network between the brokers"
        )
        try:
            await self._store.multi(
                [
                    check_registration(broker_id, self._fence.broker_epoch),
                    Delete(paths.broker(broker_id)),
                ]
            )
        except StoreError as error:
            self._stands_aside = False
            _log.warning("cannot end this broker's registration: %s", error.message)

    async def _open_session(self) -> Session:
        session = await self._store.open_session(self._lease_ms)
        session.on_expired(self._doubt.set)
        self.session = session
        return session

    async def _register(self, session: Session, *, clean: bool) -> int:
        assert self._broker is not None
        try:
            epoch = await register(
                self._store,
                session,
                self._broker,
                self._clock.now_ms(),
                clean=clean,
                boot_id=self._boot_id,
            )
        except NodeExists:
            found = await self._epoch_in(session)
            if found is None:
                raise
            epoch = found
        self._fence.registered(epoch)
        return epoch

    async def _epoch_in(self, session: Session) -> int | None:
        """Return the broker epoch if this session has registered although the answer was lost."""
        assert self._broker is not None
        node = await self._store.get(paths.broker(self._broker.id))
        epoch = await self._store.get(paths.broker_epoch(self._broker.id))
        if node is None or epoch is None or node.owner != session.id:
            return None
        return epoch.version + 1

    async def _keep(self) -> None:
        """Register again whenever the registration has ended."""
        while True:
            await self._doubt.wait()
            self._doubt.clear()
            try:
                await self._look()
            except StoreError as error:
                _log.warning("registering this broker: %s", error.message)
                await asyncio.sleep(_PAUSE_S)
                self._doubt.set()
            except Exception:  # noqa: BLE001  # The supervisor of the registration.
                _log.exception("registering this broker failed unexpectedly")
                await asyncio.sleep(_PAUSE_S)
                self._doubt.set()

    async def _look(self) -> None:
        broker, session = self._broker, self.session
        assert broker is not None
        assert session is not None
        if not session.expired:
            node = await self._store.get(paths.broker(broker.id))
            epoch = await self._store.get(paths.broker_epoch(broker.id))
            known = None if node is None or epoch is None else epoch.version + 1
            # A registration whose answer was lost may have succeeded without being known here.
            if self._fence.is_registered and known == self._fence.broker_epoch:
                return
        if self._left:
            return
        if self._fence.is_registered:
            _log.warning(
                "this broker's registration has ended; it stops leading and registers again"
            )
        self._fence.unregistered()
        self._on_lost()
        if self._stands_aside:
            # Another broker should become controller before this one is a candidate again.
            await asyncio.sleep(_ASIDE_S)
            self._stands_aside = False
        if session.expired:
            session = await self._open_session()
            await self._note.write((noted(session),))
        try:
            # The process kept running, so no record was lost.
            await self._register(session, clean=True)
        except NodeExists:
            # The old session's node disappears when the store has noticed the session's end.
            await asyncio.sleep(_PAUSE_S)
            self._doubt.set()
            return
        except SessionExpired:
            self._doubt.set()
            return
        await self._on_joined(session)
