"""Applies all changes of this broker's cluster image.

Live brokers, topics and leaders change only by the controller's UpdateMetadata. Settings and
features change by `show`.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from ottla.base.ids import BrokerId, TopicId, broker_ids
from ottla.broker.cluster.controller_fence import ControllerFence
from ottla.broker.runtime.signal import Signal
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import Store
from ottla.metadata import nodes, paths
from ottla.metadata.image import (
    PROTOCOL_NAMES,
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from ottla.wire.messages.between_brokers import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)

# The leader of a partition whose topic is being deleted.
LEADER_DURING_DELETE = -2
_EVERYTHING = 2
# The settings of up to this many topics are read one by one.
_FEW = 16


class PartitionHost(Protocol):
    """Keeps this broker's partitions consistent with the image."""

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete partitions to match `image`."""
        ...

    def update_configs(self, image: ClusterImage) -> None:
        """Apply changed settings to the partitions at once."""
        ...


class MetadataUpdates:
    """Applies image changes in order, and wakes tasks that wait for an image."""

    def __init__(
        self,
        view: ClusterView,
        store: Store,
        fence: ControllerFence,
        host: PartitionHost,
        image_changed: Signal[[]],
    ) -> None:
        self._view = view
        self._store = store
        self._fence = fence
        self._host = host
        self._image_changed = image_changed
        # Held by each change, from reading the image to replacing it.
        self.changing = asyncio.Lock()
        self._waiters: list[tuple[Callable[[ClusterImage], bool], asyncio.Future[None]]] = []
        # Whether a controller has sent metadata in this registration.
        self.received_image = False

    async def apply(self, request: UpdateMetadataRequest) -> None:
        """Apply the controller's metadata. Raises OttlaError if the controller is fenced."""
        self._fence.check(request.controller_id, request.controller_epoch, request.broker_epoch)
        ids = {
            topic.topic_name: TopicId(topic.topic_id)
            for topic in request.topic_states
            if not _is_deleted(topic.partition_states)
        }
        async with self.changing:
            configs = await self.configs_of(ids)
            # The epoch may have changed while the settings were read.
            self._fence.check(request.controller_id, request.controller_epoch, request.broker_epoch)
            image = _updated(self._view.image, request, configs)
            await self._show(image)
        self.received_image = True
        self._notify()

    def show(self, image: ClusterImage) -> None:
        """Make `image` the current image.

        Derive `image` from the current image without an `await` before this call. Hold `changing`,
        unless no update can arrive yet.
        """
        self._view.replace(image)

    async def configs_of(self, topics: Mapping[str, TopicId]) -> dict[str, Mapping[str, str]]:
        """Return the topics' own settings by name, from the image or else from the store."""
        image = self._view.image
        found: dict[str, Mapping[str, str]] = {}
        unknown: list[str] = []
        for name, topic_id in topics.items():
            known = image.topics.get(name)
            if known is not None and known.id == topic_id:
                found[name] = known.configs
            else:
                unknown.append(name)
        if len(unknown) > _FEW:
            tree = await self._store.subtree(paths.CONFIG_TOPICS)
        for name in unknown:
            path = paths.topic_config(name)
            node = tree.get(path) if len(unknown) > _FEW else await self._store.get(path)
            found[name] = {} if node is None else nodes.decode_configs(path, node.data)
        return found

    async def wait_for(self, condition: Callable[[ClusterImage], bool], timeout_s: float) -> bool:
        """Return True as soon as the image fulfils `condition`, False at the timeout."""
        if condition(self._view.image):
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((condition, waiter))
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            return False
        finally:
            self._waiters = [entry for entry in self._waiters if entry[1] is not waiter]
        return True

    async def _show(self, image: ClusterImage) -> None:
        """Apply an image: open partitions before clients see them, and hide them before closing."""
        before = self._view.image
        if any(t.id not in image.topics_by_id for t in before.topics.values()):
            self._view.replace(image)
            await self._host.apply(image)
            return
        try:
            await self._host.apply(image)
        finally:
            self._view.replace(image)

    def _notify(self) -> None:
        self._image_changed.emit()
        for condition, waiter in list(self._waiters):
            if not waiter.done() and condition(self._view.image):
                waiter.set_result(None)


def _updated(
    image: ClusterImage, request: UpdateMetadataRequest, configs: Mapping[str, Mapping[str, str]]
) -> ClusterImage:
    everything = request.type == _EVERYTHING
    topics: dict[str, TopicImage] = {} if everything else dict(image.topics)
    for topic in request.topic_states:
        known = image.topics.get(topic.topic_name)
        if _is_deleted(topic.partition_states):
            if known is not None and known.id == topic.topic_id:
                topics.pop(topic.topic_name, None)
            continue
        if known is None or known.id != topic.topic_id:
            known = TopicImage(
                topic.topic_name, TopicId(topic.topic_id), (), configs[topic.topic_name]
            )
        partitions = _partitions(known, topic.partition_states)
        topics[topic.topic_name] = replace(known, partitions=partitions)
    return replace(
        image,
        controller_id=BrokerId(request.controller_id),
        brokers={BrokerId(broker.id): _broker(broker) for broker in request.live_brokers},
        topics=topics,
        topics_by_id={topic.id: topic for topic in topics.values()},
    )


def _is_deleted(states: list[UpdateMetadataPartitionState]) -> bool:
    return bool(states) and states[0].leader == LEADER_DURING_DELETE


def _partitions(
    topic: TopicImage, states: list[UpdateMetadataPartitionState]
) -> tuple[PartitionImage, ...]:
    partitions = dict(enumerate(topic.partitions))
    for state in states:
        known = partitions.get(state.partition_index)
        sent = _partition(state)
        # A state older than the known one is dropped.
        if known is None or (sent.leader_epoch, sent.version) >= (
            known.leader_epoch,
            known.version,
        ):
            partitions[state.partition_index] = sent
    count = 0
    while count in partitions:
        count += 1
    return tuple(partitions[index] for index in range(count))


def _partition(state: UpdateMetadataPartitionState) -> PartitionImage:
    return PartitionImage(
        leader=BrokerId(state.leader),
        leader_epoch=state.leader_epoch,
        replicas=broker_ids(state.replicas),
        isr=broker_ids(state.isr),
        version=state.zk_version,
        elr=broker_ids(state.elr),
        last_known_elr=broker_ids(state.last_known_elr),
    )


def _broker(broker: UpdateMetadataBroker) -> BrokerImage:
    endpoints = {
        each.listener: Endpoint(each.host, each.port, PROTOCOL_NAMES[each.security_protocol])
        for each in broker.endpoints
    }
    return BrokerImage(BrokerId(broker.id), endpoints, broker.rack, broker.epoch)
