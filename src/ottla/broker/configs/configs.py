"""Dynamic settings: stored, applied at once, and described with their sources."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings import BROKER_SETTINGS, GROUP_SETTINGS, TOPIC_SETTINGS, BrokerSettings
from ottla.base.settings.alter import Alteration, altered
from ottla.base.settings.broker import dynamic_setting, own_name, without_secrets
from ottla.base.settings.check import (
    MIN_ISR,
    Ignored,
    check_broker_configs,
    check_changed_topic,
    check_group_configs,
    usable,
)
from ottla.base.settings.client_metrics import (
    CLIENT_METRICS_SETTINGS,
    check_client_metrics,
    check_operations,
    client_metrics_value,
)
from ottla.base.settings.listeners import without_listener
from ottla.base.settings.order import check_order, check_together
from ottla.base.settings.resolve import (
    THROTTLES,
    ConfigSource,
    Resolved,
    Synonym,
    broker_value,
    group_value,
    listener_values,
    topic_value,
)
from ottla.base.settings.tables.setting import ConfigType, Setting, Value
from ottla.broker.cluster.metadata_updates import MetadataUpdates, PartitionHost
from ottla.broker.configs.changes import change
from ottla.broker.configs.cluster_min_isr import check_min_isr_change
from ottla.broker.configs.loggers import alter_loggers, loggers
from ottla.broker.configs.tls_at_start import TlsAtStart
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.topics import unknown_topic
from ottla.broker.undo.changes import ChangeLog, changed_values
from ottla.coordination.interface.store import Operation, Store
from ottla.metadata import paths
from ottla.metadata.image import ALL_BROKERS, ClusterImage, TopicImage
from ottla.metadata.nodes import decode_configs
from ottla.metadata.topic_names import check_topic_name
from ottla.metadata.undo import UNKNOWN_AUTHOR, Author, StoredChange
from ottla.network.tls_security import check_listeners
from ottla.share import dead_letters

_log = logging.getLogger(__name__)


class ResourceType(IntEnum):
    """The types of resources that have settings, numbered as in the protocol."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Configs:
    """Describes and alters the settings of topics, brokers, groups and client metrics."""

    def __init__(
        self,
        view: ClusterView,
        updates: MetadataUpdates,
        store: Store,
        settings: BrokerSettings,
        host: PartitionHost,
        clock: Clock,
        on_rules_changed: Callable[[], None],
    ) -> None:
        self._view = view
        self._updates = updates
        self._store = store
        self._settings = settings
        self._host = host
        self._clock = clock
        self.changes = ChangeLog(store, clock)
        # Called when settings that affect elections may have changed.
        self._on_rules_changed = on_rules_changed
        # Stored settings of this broker that this version refuses.
        self._ignored: list[Ignored] = []
        self._tls_at_start = TlsAtStart()

    def load(self) -> None:
        """Apply this broker's stored settings; the image must have been read."""
        self._take_broker_configs(self._view.image)
        self._tls_at_start.check(str(self._view.broker_id), self._settings)
        self._take_broker_configs(self._view.image)

    @property
    def ignored_count(self) -> int:
        """Return how many stored settings this broker refuses."""
        return len(self._ignored)

    def describe(self, kind: int, name: str, keys: Collection[str] = ()) -> list[Resolved]:
        """Return all settings of a resource, except internal ones, by name. Raises OttlaError.

        With `keys`, a topic's other settings are left out, which saves resolving them.
        """
        match kind:
            case ResourceType.TOPIC:
                topic = self._topic(name)
                return [
                    topic_value(key, topic.configs, self._settings)
                    for key in _described(TOPIC_SETTINGS)
                    if not keys or key in keys
                ]
            case ResourceType.BROKER:
                return self._describe_broker(name)
            case ResourceType.GROUP:
                _check_group(name)
                configs = self._view.image.group_configs.get(name, {})
                return [
                    group_value(key, configs, self._settings) for key in _described(GROUP_SETTINGS)
                ]
            case ResourceType.CLIENT_METRICS:
                _check_subscription(name)
                configs = self._view.image.client_metrics.get(name, {})
                return [client_metrics_value(key, configs) for key in CLIENT_METRICS_SETTINGS]
            case ResourceType.BROKER_LOGGER:
                self._check_own_id(name)
                return loggers()
        raise _unsupported(kind)

    async def alter(
        self,
        kind: int,
        name: str,
        alterations: Sequence[Alteration],
        author: Author = UNKNOWN_AUTHOR,
        *,
        validate_only: bool,
    ) -> None:
        """Change single settings (KIP-339). If it raises OttlaError, nothing was changed."""
        if kind == ResourceType.BROKER_LOGGER:
            self._check_own_id(name)
            alter_loggers(alterations, validate_only=validate_only)
            return
        table, word = _table(kind)

        def after(held: Mapping[str, str]) -> Mapping[str, str]:
            if kind == ResourceType.CLIENT_METRICS:
                check_operations(alterations)
            return altered(held, alterations, table, word, self._inherited_lists(kind, held))

        await self._change(kind, name, after, author, validate_only=validate_only)

    async def replace(
        self,
        kind: int,
        name: str,
        configs: Mapping[str, str],
        author: Author = UNKNOWN_AUTHOR,
        *,
        validate_only: bool,
    ) -> None:
        """Replace all settings with `configs` (the older AlterConfigs). Raises OttlaError."""
        await self._change(kind, name, lambda _held: configs, author, validate_only=validate_only)

    def resources(self, kinds: Sequence[int]) -> list[tuple[int, str]]:
        """Return (type, name) of every resource of `kinds` that can have settings (KIP-1142)."""
        image = self._view.image
        found: list[tuple[int, str]] = []
        if ResourceType.TOPIC in kinds:
            found += [(ResourceType.TOPIC, name) for name in sorted(image.topics)]
        brokers = [str(broker) for broker in sorted(image.brokers)]
        if ResourceType.BROKER in kinds:
            found += [(ResourceType.BROKER, name) for name in brokers]
        if ResourceType.BROKER_LOGGER in kinds:
            found += [(ResourceType.BROKER_LOGGER, name) for name in brokers]
        if ResourceType.CLIENT_METRICS in kinds:
            named = sorted(name for name, configs in image.client_metrics.items() if configs)
            found += [(ResourceType.CLIENT_METRICS, name) for name in named]
        if ResourceType.GROUP in kinds:
            named = sorted(name for name, configs in image.group_configs.items() if configs)
            found += [(ResourceType.GROUP, name) for name in named]
        return found

    async def _change(
        self,
        kind: int,
        name: str,
        changed: Callable[[Mapping[str, str]], Mapping[str, str]],
        author: Author,
        *,
        validate_only: bool,
    ) -> None:
        """Apply `changed` to the current settings, store the result and put it into effect."""

        def decide(stored: Mapping[str, str] | None) -> Mapping[str, str] | None:
            if stored is None and kind == ResourceType.TOPIC:
                raise unknown_topic(name)  # Another broker has just deleted the topic.
            held = stored or {}
            after = changed(held)
            self._check_change(kind, name, held, after)
            return None if validate_only or dict(after) == dict(held) else after

        def record(before: Mapping[str, str], after: Mapping[str, str]) -> Sequence[Operation]:
            values = changed_values(before, after)
            word = ResourceType(kind).name.lower()
            return self.changes.operations(StoredChange(word, name, values, author))

        async with self._updates.changing:
            self._check_resource(kind, name)
            stored = await change(self._store, _path(kind, name), decide, self._clock, record)
            if stored is None:
                return
            self._put_in_effect(kind, name, stored)
        await self.changes.prune()
        shown = without_secrets(stored)
        _log.info("settings of %s %s are now %s", ResourceType(kind).name, name, shown)

    def _check_change(
        self, kind: int, name: str, held: Mapping[str, str], after: Mapping[str, str]
    ) -> None:
        """Raise OttlaError if `after` is invalid."""
        match kind:
            case ResourceType.TOPIC:
                factor = self._topic(name).replication_factor
                for oddity in check_changed_topic(held, after, factor, self._settings):
                    _log.warning("topic %s: %s", name, oddity.sentence)
            case ResourceType.GROUP:
                check_group_configs(after, self._settings)
                letters = after.get(dead_letters.TOPIC_NAME, "").strip()
                if letters and letters != held.get(dead_letters.TOPIC_NAME, "").strip():
                    dead_letters.check_name(letters, self._settings.text(dead_letters.NAME_PREFIX))
            case ResourceType.CLIENT_METRICS:
                check_client_metrics(after)
            case _:
                changed = frozenset(
                    key for key in {*held, *after} if held.get(key) != after.get(key)
                )
                check_min_isr_change(name, held.get(MIN_ISR), after.get(MIN_ISR))
                self._check_broker_change(name, after, changed)

    def _check_broker_change(
        self, name: str, after: Mapping[str, str], changed: frozenset[str]
    ) -> None:
        """Raise OttlaError(INVALID_REQUEST), Kafka's code for invalid broker settings."""
        ignored = {each.name for each in self._ignored if each.broker == name} - changed
        counting = {key: text for key, text in after.items() if key not in ignored}
        try:
            check_broker_configs(after, changed, per_broker=bool(name))
            check_order(changed, lambda key: self._broker_value(key, counting))
            check_together(changed, lambda key: self._broker_value(key, counting))
            if name == str(self._view.broker_id):
                self._check_own_listeners(counting, changed)
        except OttlaError as error:
            raise OttlaError(ErrorCode.INVALID_REQUEST, error.message) from error

    def _check_own_listeners(self, after: Mapping[str, str], changed: frozenset[str]) -> None:
        """Raise OttlaError(INVALID_CONFIG) if this broker's listeners cannot use a change."""
        for key in sorted(changed & after.keys()):
            why = without_listener(self._settings, key)
            if why:
                raise OttlaError(ErrorCode.INVALID_CONFIG, f"{key}: {why}")
        if any(own_name(key).startswith("ssl.") for key in changed):
            # If stored, they would prevent the broker's next start.
            later = BrokerSettings(self._settings.static)
            later.set_dynamic(self._settings.dynamic_default, after)
            check_listeners(later)

    def _broker_value(self, name: str, configs: Mapping[str, str]) -> Value:
        """Return a broker setting's value under `configs`, as far as this broker knows it."""
        if name in configs:
            return BROKER_SETTINGS[name].parse(configs[name])
        return self._settings.value(name)

    async def on_changed(self, entity: str) -> None:
        """Apply the settings of an entity (`topics/flights`) that a broker has changed."""
        path = f"/config/{entity}"
        parent, _, name = path.rpartition("/")
        async with self._updates.changing:
            node = await self._store.get(path)
            if node is None:
                return
            configs = decode_configs(path, node.data)
            if parent == paths.CONFIG_TOPICS:
                if name in self._view.image.topics:
                    self._put_in_effect(ResourceType.TOPIC, name, configs)
            elif parent == paths.CONFIG_GROUPS:
                self._put_in_effect(ResourceType.GROUP, paths.name_of(name), configs)
            elif parent == paths.CONFIG_CLIENT_METRICS:
                self._put_in_effect(ResourceType.CLIENT_METRICS, paths.name_of(name), configs)
            elif parent == paths.CONFIG_BROKERS:
                broker = "" if name == ALL_BROKERS else name
                self._put_in_effect(ResourceType.BROKER, broker, configs)

    def _put_in_effect(self, kind: int, name: str, configs: dict[str, str]) -> None:
        image = self._view.image
        match kind:
            case ResourceType.TOPIC:
                topic = image.topics[name]
                if topic.configs == configs:
                    return
                image = image.with_topic(
                    TopicImage(name, topic.id, topic.partitions, configs, topic.version)
                )
            case ResourceType.GROUP:
                image = image.with_group_configs(name, configs)
            case ResourceType.CLIENT_METRICS:
                self._updates.show(image.with_client_metrics(name, configs))
                return
            case _:
                image = image.with_broker_configs(name or ALL_BROKERS, configs)
        self._updates.show(image)
        if kind == ResourceType.BROKER:
            self._take_broker_configs(image)
        self._host.update_configs(image)
        self._on_rules_changed()

    def _take_broker_configs(self, image: ClusterImage) -> None:
        configs = image.broker_configs
        own = str(self._view.broker_id)
        found = usable(own, self._settings, configs.get(ALL_BROKERS, {}), configs.get(own, {}))
        for each in found.ignored:
            if each not in self._ignored:
                _log.warning("%s", each.sentence)
        self._ignored = found.ignored
        self._settings.set_dynamic(found.default, self._tls_at_start.usable(found.broker))

    def _check_resource(self, kind: int, name: str) -> None:
        """Raise OttlaError if there is no such resource."""
        match kind:
            case ResourceType.TOPIC:
                self._topic(name)
            case ResourceType.BROKER:
                if name:
                    self._check_broker(name)
            case ResourceType.GROUP:
                _check_group(name)
            case ResourceType.CLIENT_METRICS:
                _check_subscription(name)
            case _:
                raise _unsupported(kind)

    def _inherited_lists(self, kind: int, held: Mapping[str, str]) -> dict[str, str]:
        """Return the values of list settings that apply if the resource itself sets none."""
        table, _ = _table(kind)
        inherited: dict[str, str] = {}
        for name, setting in table.items():
            if setting.type is not ConfigType.LIST or name in held:
                continue
            if kind == ResourceType.TOPIC:
                value = topic_value(name, {}, self._settings).value
            elif kind == ResourceType.BROKER:
                value = self._settings.value(name)
            else:
                value = setting.default
            inherited[name] = setting.text_of(value) or ""
        return inherited

    def _topic(self, name: str) -> TopicImage:
        check_topic_name(name)
        topic = self._view.image.topic(name)
        if topic is None:
            raise unknown_topic(name)
        return topic

    def _describe_broker(self, name: str) -> list[Resolved]:
        if not name:
            # The settings of all brokers include only values that were set for all of them.
            configs = self._settings.dynamic_default
            return [_cluster_wide(dynamic_setting(key), configs[key]) for key in sorted(configs)]
        self._check_own_id(name)
        found = (broker_value(key, self._settings) for key in _described(BROKER_SETTINGS))
        described = [one for one in found if one.synonyms or one.setting.name not in THROTTLES]
        return described + listener_values(self._settings)

    def _check_own_id(self, name: str) -> None:
        self._check_broker(name)
        if name != str(self._view.broker_id):
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self._view.broker_id} but received "
                f"{shortened(name)}; ask the broker itself",
            )

    def _check_broker(self, name: str) -> None:
        if not name.isdecimal():
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Broker id must be an integer, but it is: {shortened(name)}; leave it "
                "empty for all brokers",
            )


def _described(table: dict[str, Setting]) -> list[str]:
    return sorted(name for name, setting in table.items() if not setting.internal)


def _table(kind: int) -> tuple[dict[str, Setting], str]:
    if kind == ResourceType.TOPIC:
        return TOPIC_SETTINGS, "topic"
    if kind == ResourceType.GROUP:
        return GROUP_SETTINGS, "group"
    if kind == ResourceType.CLIENT_METRICS:
        return CLIENT_METRICS_SETTINGS, "client metrics"
    return BROKER_SETTINGS, "broker"


def _path(kind: int, name: str) -> str:
    if kind == ResourceType.TOPIC:
        return paths.topic_config(name)
    if kind == ResourceType.GROUP:
        return paths.group_config(name)
    if kind == ResourceType.CLIENT_METRICS:
        return paths.client_metrics_config(name)
    return paths.broker_config(name or ALL_BROKERS)


def _check_subscription(name: str) -> None:
    if not name:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "Client metrics subscription name must not be empty; name the subscription",
        )


def _check_group(name: str) -> None:
    if not name:
        raise OttlaError(ErrorCode.INVALID_REQUEST, "Group name cannot be empty; name the group")


def _cluster_wide(setting: Setting, text: str) -> Resolved:
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    shown = None if setting.sensitive else text
    return Resolved(setting, setting.parse(text), source, (Synonym(setting.name, shown, source),))


def _unsupported(kind: int) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_REQUEST,
        f"Unsupported resource type {kind}; settings belong to topics (2), brokers (4), loggers "
        "of brokers (8), client metrics (16) and groups (32)",
    )
