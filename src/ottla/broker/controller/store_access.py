"""Reads the controller's state from the store, and writes its decisions.

Many states are written in few transactions, which fail if the controller epoch has changed.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller
from ottla.broker.controller.context import Context
from ottla.controller.election import Change
from ottla.coordination.interface.store import BadVersion, NoNode, Operation, Set, Store, StoreError
from ottla.metadata import nodes, paths
from ottla.metadata.image import BrokerImage, PartitionImage, TopicImage
from ottla.metadata.nodes import encode_partition, encode_topic, topic_node

# Fewer nodes than this are read one by one, more with one listing.
_FEW = 16


async def read_brokers(store: Store) -> tuple[dict[BrokerId, BrokerImage], dict[BrokerId, int]]:
    """Read the live brokers, and the marks of unclean stops with their node versions.

    A mark is written together with a broker epoch. Marks are read after the epochs, so that no mark
    of a known epoch is missed.
    """
    ids = await store.subtree(paths.BROKER_IDS)
    epochs = await store.subtree(paths.BROKER_EPOCHS)
    marks = await store.subtree(paths.UNCLEAN_STOPS)
    brokers: dict[BrokerId, BrokerImage] = {}
    for path, node in ids.items():
        if path == paths.BROKER_IDS:
            continue
        epoch = epochs.get(paths.broker_epoch(int(path.rpartition("/")[2])))
        broker = nodes.decode_broker(path, node.data, 0 if epoch is None else epoch.version + 1)
        brokers[broker.id] = broker
    unclean = {
        BrokerId(int(path.rpartition("/")[2])): node.version
        for path, node in marks.items()
        if path != paths.UNCLEAN_STOPS
    }
    return brokers, unclean


async def read_states(
    store: Store, names: Sequence[TopicPartition], topics: dict[str, TopicImage]
) -> list[tuple[TopicPartition, PartitionImage]]:
    """Read the states of the partitions in `names`; replicas are taken from `topics`."""
    if len(names) > _FEW:
        tree = await store.subtree(paths.TOPICS)
    found: list[tuple[TopicPartition, PartitionImage]] = []
    for name in names:
        path = paths.partition_state(name.topic, name.partition)
        node = tree.get(path) if len(names) > _FEW else await store.get(path)
        if node is None:
            continue
        known = topics[name.topic].partitions[name.partition]
        state = nodes.decode_partition(path, node.data, known.replicas, node.version)
        found.append((name, state._replace(adding=known.adding, removing=known.removing)))
    return found


_log = logging.getLogger(__name__)

# ZooKeeper accepts requests of up to 1 MiB; a state with its path is less than 1 KiB.
_STATES_PER_WRITE = 500


class Deposed(OttlaError):
    """Another broker has become the controller."""

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.STALE_CONTROLLER_EPOCH, "another broker has become the controller"
        )


class Planned(NamedTuple):
    """A change to write, and the state on which it is based."""

    name: TopicPartition
    before: PartitionImage
    change: Change

    @property
    def moves(self) -> bool:
        """Whether the change alters the topic's node."""
        before, after = self.before, self.change.after
        return (before.replicas, before.adding, before.removing) != (
            after.replicas,
            after.adding,
            after.removing,
        )


async def write_changes(
    store: Store, context: Context, controller_epoch: int, planned: Sequence[Planned]
) -> tuple[list[Planned], list[Planned]]:
    """Write all changes, and enter the written ones in the context.

    Return the written changes, and the changes that failed because another writer changed the
    state first. Raises Deposed, StoreUnavailable.
    """
    written: list[Planned] = []
    refused: list[Planned] = []
    for chunk in _chunks(planned):
        waiting = chunk
        while waiting:
            done, lost = await _write(store, context, controller_epoch, waiting)
            if len(lost) < len(waiting) and len(waiting) > _FEW:
                # If another writer changed one state, it may have changed many. One listing finds
                # all of them.
                lost += await _overtaken(store, waiting, lost) if lost else []
            written += done
            refused += lost
            names = {planned.name for planned in lost}
            waiting = [] if done else [p for p in waiting if p.name not in names]
    return written, refused


async def _write(
    store: Store, context: Context, controller_epoch: int, chunk: Sequence[Planned]
) -> tuple[list[Planned], list[Planned]]:
    """Write `chunk` in one transaction; return the written changes and the failed ones.

    If it fails, nothing is written, and only the changes of the first failed node are returned.
    """
    nonce = int.from_bytes(random_bytes(7), "big")
    states = [
        planned._replace(
            change=replace(planned.change, after=planned.change.after._replace(nonce=nonce))
        )
        for planned in chunk
    ]
    moved = _moved_topics(context, states)
    operations: list[Operation] = [check_controller(controller_epoch)]
    operations += [
        Set(paths.topic(topic.name), encode_topic(topic_node(topic)), topic.version)
        for topic in moved
    ]
    operations += [
        Set(
            paths.partition_state(*planned.name),
            encode_partition(planned.change.after, controller_epoch),
            planned.before.version,
        )
        for planned in states
    ]
    try:
        results = await store.multi(operations)
    except (BadVersion, NoNode) as error:
        return [], _refused(error, chunk)
    versions = results[1 + len(moved) :]
    done = [
        planned._replace(
            change=replace(
                planned.change, after=planned.change.after._replace(version=_number(version))
            )
        )
        for planned, version in zip(states, versions, strict=True)
    ]
    context.set_partitions((planned.name, planned.change.after) for planned in done)
    for topic, version in zip(moved, results[1 : 1 + len(moved)], strict=True):
        context.topics[topic.name] = replace(context.topics[topic.name], version=_number(version))
    return done, []


async def _overtaken(
    store: Store, planned: Sequence[Planned], known: Sequence[Planned]
) -> list[Planned]:
    """Return the changes, except those in `known`, whose state another writer has changed."""
    states = await store.subtree(paths.TOPICS)
    names = {each.name for each in known}
    return [
        each
        for each in planned
        if each.name not in names
        and (
            (node := states.get(paths.partition_state(*each.name))) is None
            or node.version != each.before.version
        )
    ]


def _moved_topics(context: Context, states: Sequence[Planned]) -> list[TopicImage]:
    """Return the topics whose nodes change, with the changed partitions."""
    by_topic: dict[str, list[Planned]] = {}
    for planned in states:
        if planned.moves:
            by_topic.setdefault(planned.name.topic, []).append(planned)
    moved: list[TopicImage] = []
    for name, changes in by_topic.items():
        topic = context.topics[name]
        partitions = list(topic.partitions)
        for planned in changes:
            partitions[planned.name.partition] = planned.change.after
        moved.append(replace(topic, partitions=tuple(partitions)))
    return moved


def _refused(error: StoreError, chunk: Sequence[Planned]) -> list[Planned]:
    if error.path == paths.CONTROLLER_EPOCH:
        raise Deposed from error
    lost = [
        planned
        for planned in chunk
        if error.path in (paths.partition_state(*planned.name), paths.topic(planned.name.topic))
    ]
    assert lost, f"the store refused {error.path}, which was not written"
    _log.info("%s; deciding again", error.message)
    return lost


def _chunks(planned: Sequence[Planned]) -> list[list[Planned]]:
    return [
        list(planned[start : start + _STATES_PER_WRITE])
        for start in range(0, len(planned), _STATES_PER_WRITE)
    ]


def _number(result: str | int | None) -> int:
    assert isinstance(result, int), "a Set gives the new version"
    return result
