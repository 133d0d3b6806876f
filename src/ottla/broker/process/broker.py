"""One broker: starts its parts in order, and stops them in the opposite one.

Order of start: the store, folders and their lock, the image as the store has it, listeners, the
registration; then the controller says what to host, and `start` returns when that is done. The
broker runs on the loop that calls `start`, touches neither signals nor the loop's policy, and so
can live inside any process.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from ottla.base.chance import new_random
from ottla.base.clock import Clock, SystemClock
from ottla.base.settings import BrokerSettings
from ottla.base.settings.doubts import doubts
from ottla.broker.cluster.endpoints import own_image
from ottla.broker.cluster.registration import known_brokers
from ottla.broker.partitions.flush import Worker
from ottla.broker.partitions.strays import warn_of_strays
from ottla.broker.process.closing import Closing
from ottla.broker.process.dialing import new_dialer
from ottla.broker.process.handing_over import hand_over
from ottla.broker.process.opening import Opened, open_storage
from ottla.broker.process.parts import Parts
from ottla.broker.process.patience import patiently
from ottla.broker.process.seams import Seams
from ottla.broker.process.wiring import listeners, wire
from ottla.broker.runtime.runtime import Runtime, new_runtime
from ottla.broker.serving.listeners import Listeners
from ottla.coordination.store import Store
from ottla.metadata.image import ClusterImage
from ottla.metadata.loader import load_image
from ottla.network.dialer import Dialer
from ottla.storage.disk.errors import StorageError
from ottla.storage.disk.filesystem import FileSystem, OsFileSystem

_log = logging.getLogger(__name__)

_PATIENCE_S = 2.0
# How long a broker that leads nothing any more still answers before it closes connections.
_FAREWELL_S = 0.05

T = TypeVar("T")


class _Ending(NamedTuple):
    """How the broker is to stop."""

    # Whether to flush all that was appended; if not, it is as after a crash.
    clean: bool
    # Whether to move leadership to other brokers first.
    hands_over: bool


class Broker:
    """One broker. `await start()`, serve, `await stop()`; it is not started twice.

    `parts` and `listeners` are there once the storage is open.
    """

    parts: Parts
    listeners: Listeners

    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        filesystem: FileSystem | None = None,
        store: Store | None = None,
        rng: random.Random | None = None,
        worker: Worker | None = None,
        dialer: Dialer | None = None,
    ) -> None:
        self.settings = settings
        self._seams = Seams(
            clock=clock or SystemClock(),
            filesystem=filesystem or OsFileSystem(),
            rng=rng or new_random(),
            dialer=dialer or new_dialer(settings),
            store=store,
            worker=worker,
        )
        self._closing = Closing()
        self._ending = _Ending(clean=False, hands_over=False)

    @property
    def broker_id(self) -> int:
        """`node.id`."""
        return self.settings.broker_id

    @property
    def image(self) -> ClusterImage:
        """The cluster as this broker knows it now."""
        return self.parts.view.image

    @property
    def port(self) -> int:
        """Port of the first listener."""
        return self.listeners.port

    @property
    def ports(self) -> dict[str, int]:
        """Ports by the names of their listeners."""
        return self.listeners.ports

    async def start(self) -> None:
        """Serve. Raises OttlaError with cause and remedy where it cannot; then all is closed."""
        try:
            await self._start()
        except GeneratorExit:
            # Abandoned with its loop: see `Closing`.
            raise
        except BaseException:
            await self.stop(clean=False)
            raise

    async def stop(self, *, clean: bool = True, hands_over: bool = True) -> None:
        """Stop serving, flush and close. Not clean: without the flush, as after a crash.

        `hands_over` is False where all brokers stop, and none is left to take over.
        """
        self._ending = _Ending(clean=clean, hands_over=clean and hands_over)
        await self._closing.close()

    async def _start(self) -> None:
        runtime = new_runtime(self._seams.clock, asyncio.get_running_loop())
        opened = await open_storage(self.settings, self._seams, runtime, self._closing)
        self._assemble(runtime, opened)
        self._close_at_the_end()
        parts = self.parts
        await self._load()
        if parts.audit is not None:
            await parts.audit.start()
        await self.listeners.start()
        await self._register()
        parts.groups.start()
        parts.transactions.start()
        parts.share_states.start()
        parts.replication.start()
        parts.maintenance.start()
        parts.scrubber.start()
        parts.cleaner.start()
        if parts.tokens is not None:
            interval_ms = self.settings.integer("delegation.token.expiry.check.interval.ms")
            parts.runtime.spawn(
                parts.tokens.keep_removing(interval_ms, lambda: parts.controller.is_active)
            )
        parts.readiness.begin()
        if parts.store_mark is not None:
            parts.runtime.spawn(parts.store_mark.keep())
        for note in self.settings.notes:
            _log.info("%s", note)
        has_acls = parts.acls is not None and any(parts.acls.authorizer.rules)
        for doubt in doubts(self.settings, has_acls=has_acls):
            _log.warning("%s", doubt)

    def _assemble(self, runtime: Runtime, opened: Opened) -> None:
        self.parts = wire(self.settings, self._seams, runtime, opened)
        self.listeners = listeners(self.parts)

    def _close_at_the_end(self) -> None:
        """Register how each part is closed; the last is closed first."""
        parts, closing = self.parts, self._closing
        closing.push(parts.membership.leave)
        closing.push(parts.runtime.purgatory.close)
        closing.push(self._close_logs)
        closing.push(parts.dead_letters.close)
        closing.push(parts.persister.close)
        closing.push(parts.share_states.close)
        closing.push(parts.sharing.close)
        closing.push(parts.add_partitions_sender.close)
        closing.push(parts.marker_sender.close)
        closing.push(parts.transactions.close)
        closing.push(parts.groups.close)
        closing.push(parts.peers.close)
        closing.push(parts.replication.close)
        closing.push(parts.topics.close)
        closing.push(parts.config_changes.stop)
        closing.push(parts.controller.stop)
        closing.push(parts.removals.close)
        closing.push(parts.scrubber.stop)
        closing.push(parts.maintenance.stop)
        closing.push(parts.retention.readers.close)
        closing.push(parts.cleaner.stop)
        closing.push(parts.runtime.tasks.cancel)
        if parts.audit is not None:
            closing.push(parts.audit.close)
        closing.push(self.listeners.stop)
        closing.push(self._finish_requests)
        closing.push(parts.membership.retire)

    async def _ask_store(self, action: Callable[[], Awaitable[T]]) -> T:
        limit_ms = self.settings.integer("broker.session.timeout.ms")
        return await patiently(action, self._seams.clock, limit_ms)

    async def _load(self) -> None:
        parts = self.parts
        await self._ask_store(parts.config_changes.start)
        loaded = await self._ask_store(lambda: load_image(parts.store, parts.view.cluster_id))
        # The leaders are those in the store, until the controller sends a newer image.
        parts.updates.show(loaded.image)
        # A broker that died before this one started is named as one that died now.
        known = await self._ask_store(lambda: known_brokers(parts.store))
        known.pop(parts.view.broker_id, None)
        now_ms = parts.runtime.clock.monotonic_ms()
        parts.departed.on_image(known, now_ms)
        parts.departed.on_image(parts.view.image.brokers, now_ms)
        warn_of_strays(parts.log_directories.found_at_start, loaded.image)
        parts.configs.load()
        await self._ask_store(parts.quotas.stored.load)
        await self._ask_store(parts.users.load)
        if parts.acls is not None:
            await self._ask_store(parts.acls.load)
        if parts.tokens is not None:
            await self._ask_store(parts.tokens.load)
        parts.config_changes.follow()
        for deletion in parts.log_directories.leftovers():
            parts.removals.remove_later(deletion)

    async def _register(self) -> None:
        """Register the broker, with the ports it has now, and wait for its first LeaderAndIsr."""
        parts, view = self.parts, self.parts.view
        image = own_image(view.broker_id, self.settings, self.listeners.ports)
        clean = parts.log_directories.kept_all
        epoch = await parts.membership.join(image, clean=clean)
        if not clean:
            await parts.runtime.in_thread(parts.log_directories.confirm_run)
        updates = parts.updates
        updates.show(view.image.with_broker(replace(image, epoch=epoch)))
        if not await updates.wait_for(lambda _image: updates.heard, _PATIENCE_S):
            _log.warning(
                "no controller has sent this broker its partitions yet; it accepts clients anyway"
            )

    async def _finish_requests(self) -> None:
        """Hand leadership over and answer waiting requests, while connections are still open."""
        if not self._ending.clean:
            return
        if self._ending.hands_over:
            await self._hand_over()
        else:
            # The other brokers stop, too: nothing is left to decide about them.
            self.parts.controller.stop()
        # First read no more: a record that came while the rest is flushed would stay unanswered.
        self.listeners.stop_reading()
        # Flush what is appended, so that its producers are answered before they are cut off.
        try:
            await asyncio.wait_for(self.parts.flusher.settle(), _PATIENCE_S)
        except TimeoutError:
            _log.warning("the disk does not answer: stopping without waiting for it")
        # The answers leave in the next turn.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def _hand_over(self) -> None:
        """Have the controller move away what this broker leads, before it stops (P30)."""
        parts = self.parts
        if len(parts.view.image.brokers) < 2:
            return
        if self.settings.flag("controlled.shutdown.enable"):
            await hand_over(parts.view, parts.fence, parts.controller, parts.peers)
            # Clients that come meanwhile are redirected; clients whose connection ends without
            # an answer would first try here again.
            await asyncio.sleep(_FAREWELL_S)

    def _close_logs(self) -> None:
        parts = self.parts
        parts.flusher.close()
        high_watermarks = parts.partitions.high_watermarks()
        parts.partitions.close()
        try:
            parts.log_directories.close(
                high_watermarks, clean=self._ending.clean, now_ms=self._seams.clock.now_ms()
            )
        except StorageError as error:
            _log.error("closing the logs: %s", error.message)
