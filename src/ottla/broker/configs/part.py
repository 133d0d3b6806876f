"""The part for all stored data that may change at runtime: settings, quotas, users, ACLs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.base.clock import Clock
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.metadata_updates import PartitionHost
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.configs.changes import ConfigChanges, OnChanged, reading_all
from ottla.broker.configs.configs import Configs
from ottla.broker.configs.features import Features
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.topics.part import MetadataPart


class StoredPart(Protocol):
    """Stored data of another part below `/config`: quotas, users, ACLs or tokens."""

    async def load(self) -> None:
        """Read all data of the part. Raises StoreError."""

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback that reads changed data of this part, or passes it to `others`."""


@dataclass(frozen=True, slots=True)
class ConfigsStatus:
    """Reports the last notice read by this broker, and the data it could not use."""

    last_notice: str
    # Stored settings that this broker ignores, because this version refuses them.
    ignored_settings: int


class ConfigsPart(BrokerPart):
    """Reads all stored data at the start, then follows the changes of other brokers."""

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
        """Create the part. `on_rules_changed` is called when election settings may have changed."""
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
        # Changes are reported from here on.
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
