"""Everything in the store that may change while the broker runs: settings, quotas, users, ACLs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.metadata_updates import PartitionHost
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.configs.changes import ConfigChanges, OnChanged
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.features import Features
from ottla.broker.configs.reading_all import reading_all
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.topics.part import MetadataPart


class StoredPart(Protocol):
    """What another part has in the store below `/config`: quotas, users, ACLs or tokens."""

    async def load(self) -> None:
        """Read all of it. Raises StoreError."""

    def before(self, others: OnChanged) -> OnChanged:
        """A callback for change notifications: reads what is its own, or calls `others`."""


@dataclass(frozen=True, slots=True)
class ConfigsStatus:
    """How far this broker has read the notices of changes, and what it could not use."""

    last_notice: str
    # Settings in the store that this broker ignores, as this version refuses them.
    ignored_settings: int


class ConfigsPart(BrokerPart):
    """Reads all that is stored at the start, then follows the changes of other brokers."""

    def __init__(
        self,
        settings: BrokerSettings,
        clock: Clock,
        cluster: ClusterPart,
        metadata: MetadataPart,
        host: PartitionHost,
        stored: Sequence[StoredPart],
        on_rules_changed: Callable[[], None],
    ) -> None:
        """`on_rules_changed`: settings that decide elections may have changed."""
        view, store, updates = cluster.view, cluster.store, metadata.updates
        self._patience = StorePatience(clock, settings.integer("broker.session.timeout.ms"))
        self._metadata = metadata
        self._stored = stored
        self.configs = Configs(view, updates, store, settings, host, clock, on_rules_changed)
        self.features = Features(view, updates, store, clock)
        on_changed = self.features.before(self.configs.on_changed)
        loads: list[Callable[[], Awaitable[None]]] = []
        for each in stored:
            on_changed = each.before(on_changed)
            loads.append(each.load)
        reload = reading_all(store, on_changed, loads)
        self._changes = ConfigChanges(store, clock, on_changed, reload)

    async def start(self) -> None:
        ask = self._patience.ask
        # Changes are noticed from here on.
        await ask(self._changes.start)
        await self._metadata.load(self._patience)
        self.configs.load()
        for each in self._stored:
            await ask(each.load)
        self._changes.follow()

    async def stop(self) -> None:
        self._changes.stop()

    def status(self) -> ConfigsStatus:
        return ConfigsStatus(self._changes.last, self.configs.ignored_count)
