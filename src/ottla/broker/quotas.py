"""The quotas of clients, put together: what is set, and who keeps clients to it."""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.quota_settings import QuotaSettings
from ottla.broker.throttling import Throttling
from ottla.coordination.store import Store
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.table import QuotaTable

OnChanged = Callable[[str], Awaitable[None]]


class Quotas(QuotaSettings):
    """The quotas of one broker. They hold from `load` on."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: Store,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        on_throttling: Callable[[Throttling | None], None],
    ) -> None:
        """`on_throttling` is told who slows clients: nobody, while no quota for any is set."""
        super().__init__(store, clock, self._on_quotas)
        self.clients = ClientQuotas(
            Windows(
                settings.integer("quota.window.num"),
                settings.integer("quota.window.size.seconds") * 1000,
            ),
            Windows(
                settings.integer("controller.quota.window.num"),
                settings.integer("controller.quota.window.size.seconds") * 1000,
            ),
        )
        self._throttling = Throttling(self.clients, clock, loop)
        self._on_throttling = on_throttling

    def before(self, others: OnChanged) -> OnChanged:
        """Who is told of changed settings: these quotas, or `others` where it is none."""

        async def on_changed(entity: str) -> None:
            if not await self.on_changed(entity):
                await others(entity)

        return on_changed

    def _on_quotas(self, table: QuotaTable) -> None:
        self.clients.table = table
        self._on_throttling(self._throttling if table.limits_clients else None)
