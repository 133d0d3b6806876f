"""The quotas of clients on this broker, including those on topic changes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ottla.base import system
from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.base.settings.broker import own_name
from ottla.base.settings.listeners import inter_broker_listener, listen_addresses
from ottla.broker.quotas.quota_settings import QuotaSettings
from ottla.broker.requests.request import RequestContext
from ottla.broker.requests.throttling import Throttling
from ottla.broker.runtime.part import BrokerPart
from ottla.coordination.interface.store import Store
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.connections import (
    UNLIMITED,
    ConnectionQuotas,
    ConnectionRules,
    Room,
    parse_overrides,
    parse_user_overrides,
)
from ottla.quota.table import QuotaTable


def admit(request: RequestContext, partitions: int, *, strict: bool) -> None:
    """Count the partitions that a client's request creates or deletes, before it is served.

    `strict` means that the request's version has the error THROTTLING_QUOTA_EXCEEDED. Then this
    error is raised while the quota is exceeded. Requests of older versions are served, and their
    answers are delayed.
    """
    throttle = request.throttle
    bucket = None if throttle is None else throttle.bucket()
    if throttle is None or bucket is None:
        return
    now_ms = throttle.now_ms()
    if not strict:
        throttle.delay(bucket.record(partitions, now_ms))
        return
    wait_ms = bucket.wait_ms(now_ms)
    if wait_ms:
        throttle.delay(wait_ms)
        raise OttlaError(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED,
            "The throttling quota has been exceeded: controller_mutation_rate allows "
            f"{bucket.limit:g} partitions a second here; try again in {wait_ms} ms",
        )
    bucket.record(partitions, now_ms)


_FAILED_LOGINS = "max.failed.authentication.rate"
_OF_CONNECTIONS = ("max.connection", _FAILED_LOGINS)

OnChanged = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QuotasStatus:
    """Counts limited connections on all listeners, and reports whether quotas are set."""

    connections: int
    limits_clients: bool


class Quotas(BrokerPart):
    """The quotas of one broker. `stored` reads and changes them; they apply once `load` has run."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: Store,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.stored = QuotaSettings(store, clock, self._on_quotas)
        windows = Windows(
            settings.integer("quota.window.num"),
            settings.integer("quota.window.size.seconds") * 1000,
        )
        self.clients = ClientQuotas(
            windows,
            Windows(
                settings.integer("controller.quota.window.num"),
                settings.integer("controller.quota.window.size.seconds") * 1000,
            ),
        )
        self._settings = settings
        self.connections = ConnectionQuotas(_rules(settings), self.clients, windows)
        settings.subscribe(self._on_settings)
        self._throttling = Throttling(self.clients, clock, loop)
        # Throttles clients' requests; None if no user or client id has a quota.
        self.throttling: Throttling | None = None

    def status(self) -> QuotasStatus:
        return QuotasStatus(len(self.connections), self.throttling is not None)

    async def load(self) -> None:
        """Read all quotas from the store; they apply from then on. Raises StoreError."""
        await self.stored.load()

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback for change notifications: reads quotas, passes the rest to `others`."""

        async def on_changed(entity: str) -> None:
            if not await self.stored.on_changed(entity):
                await others(entity)

        return on_changed

    def _on_settings(self, changed: frozenset[str]) -> None:
        if any(own_name(name).startswith(_OF_CONNECTIONS) for name in changed):
            self.connections.take(_rules(self._settings))

    def _on_quotas(self, table: QuotaTable) -> None:
        self.clients.table = table
        self.throttling = self._throttling if table.limits_clients else None


def _rules(settings: BrokerSettings) -> ConnectionRules:
    names = [address.name for address in listen_addresses(settings)]
    return ConnectionRules(
        broker=Room(
            settings.integer("max.connections"), settings.integer("max.connection.creation.rate")
        ),
        listeners={name: _room(settings, name) for name in names},
        protected=frozenset({inter_broker_listener(settings)}) if len(names) > 1 else frozenset(),
        per_address_max=settings.integer("max.connections.per.ip"),
        overrides=parse_overrides(settings.text("max.connections.per.ip.overrides")),
        per_user_max=settings.integer("max.connections.per.user"),
        user_overrides=parse_user_overrides(settings.text("max.connections.per.user.overrides")),
        failed_logins_rate=settings.integer(_FAILED_LOGINS),
        descriptors_max=system.descriptors_max() // 2,
    )


def _room(settings: BrokerSettings, listener: str) -> Room:
    most = settings.of_listener(listener, "max.connections")
    rate = settings.of_listener(listener, "max.connection.creation.rate")
    return Room(
        UNLIMITED if most is None else int(str(most)),
        UNLIMITED if rate is None else int(str(rate)),
    )
