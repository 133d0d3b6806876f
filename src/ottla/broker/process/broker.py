"""One broker: starts its parts in order, and stops them in reverse.

The order of the start is: the store, the log directories and their lock, the cluster image from
the store, the listeners, the registration. Then the controller assigns partitions, and `start`
returns when they are ready. The broker runs on the loop that calls `start`. It changes neither
signal handlers nor the loop's policy, so it can be embedded in any process.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack

from ottla.base.chance import new_random
from ottla.base.clock import Clock, SystemClock
from ottla.base.settings import BrokerSettings
from ottla.base.settings.doubts import doubts
from ottla.base.settings.listeners import inter_broker_address
from ottla.broker.metrics.part import MetricsPart
from ottla.broker.partitions.flush import Worker
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.process.parts import Parts
from ottla.broker.process.registration import RegistrationPart
from ottla.broker.process.serving import Serving
from ottla.broker.process.storage import Seams, Storage
from ottla.broker.runtime.part import BrokerPart, StopMode
from ottla.broker.runtime.runtime import Runtime, new_runtime
from ottla.coordination.interface.store import Store
from ottla.metadata.image import ClusterImage
from ottla.network.dialer import Dialer, LoopDialer
from ottla.network.tls.options import TlsOptions, listener_options
from ottla.network.tls.source import client_source
from ottla.storage.disk.filesystem import FileSystem, OsFileSystem


def new_dialer(settings: BrokerSettings) -> Dialer:
    """Return a dialer for the brokers' listener. Raises OttlaError(INVALID_CONFIG)."""
    address = inter_broker_address(settings)
    silence_ms_max = settings.integer("broker.session.timeout.ms")
    if not address.is_tls:
        return LoopDialer(silence_ms_max)

    def options() -> TlsOptions:
        return listener_options(settings, address.name, is_sasl=address.is_sasl)

    return LoopDialer(silence_ms_max, client_source("connections to brokers", options))


_log = logging.getLogger(__name__)


class Broker:
    """A broker: `await start()`, serve, `await stop()`. It cannot be started twice.

    The attributes below are set by `start`.
    """

    runtime: Runtime
    storage: Storage
    parts: Parts
    serving: Serving
    registration: RegistrationPart
    metrics: MetricsPart

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
        self._stack = AsyncExitStack()
        self._stop_mode = StopMode()

    @property
    def broker_id(self) -> int:
        """Return `node.id`."""
        return self.settings.broker_id

    @property
    def image(self) -> ClusterImage:
        """Return the current cluster image of this broker."""
        return self.parts.cluster.view.image

    @property
    def partitions(self) -> Partitions:
        """Return all partitions that have a replica on this broker."""
        return self.parts.replication.partitions

    @property
    def port(self) -> int:
        """Return the first listener's port."""
        return self.serving.listeners.port

    @property
    def ports(self) -> dict[str, int]:
        """Return the ports by the names of their listeners."""
        return self.serving.listeners.ports

    async def start(self) -> None:
        """Start serving.

        If this fails, everything is closed again. Raises OttlaError with cause and remedy.
        """
        try:
            await self._start()
        except GeneratorExit:
            # The loop is ending, so nothing may be awaited: see `BrokerPart`.
            raise
        except BaseException:
            await self.stop(clean=False)
            raise

    async def stop(self, *, clean: bool = True, hands_over: bool = True) -> None:
        """Stop serving, flush and close. If not `clean`, skip the flush, as after a crash.

        `hands_over` is False if all brokers stop, so that no broker is left to take over
        leadership.
        """
        self._stop_mode.clean, self._stop_mode.hands_over = clean, clean and hands_over
        await self._stack.aclose()

    def status(self) -> Mapping[str, object]:
        """Return the status of each part, by the part's name; the broker must be started."""
        return {name: part.status() for name, part in self._by_name().items()}

    def _by_name(self) -> dict[str, BrokerPart]:
        return {
            "storage": self.storage,
            **self.parts.by_name(),
            "serving": self.serving,
            "registration": self.registration,
            "metrics": self.metrics,
        }

    async def _start(self) -> None:
        settings, seams, enter = self.settings, self._seams, self._stack.enter_async_context
        runtime = self.runtime = new_runtime(seams.clock, asyncio.get_running_loop())
        self.storage = await enter(Storage(settings, seams, runtime))
        self.parts = parts = Parts(settings, seams, runtime, self.storage, self._stop_mode)
        self._on_assembled()
        for part in parts:
            await enter(part)
        self.serving = await enter(Serving(settings, parts, seams.rng))
        self.registration = await enter(
            RegistrationPart(settings, parts, self.serving.listeners, self._stop_mode)
        )
        self.metrics = await enter(
            MetricsPart(
                settings, runtime, self.storage.cluster_id, self._by_name, parts.lags.refresh
            )
        )
        for part in self._by_name().values():
            part.begin()
        self._log_notes()

    def _on_assembled(self) -> None:
        """Do nothing; the simulation overrides this to observe the parts before they start."""

    def _log_notes(self) -> None:
        for note in self.settings.notes:
            _log.info("%s", note)
        acls = self.parts.access.acls
        for doubt in doubts(
            self.settings, has_acls=acls is not None and any(acls.authorizer.rules)
        ):
            _log.warning("%s", doubt)
