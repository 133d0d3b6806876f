"""Registers brokers in the store, and creates its cluster id, secret and parent nodes."""

import contextlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.broker.cluster.handshake import RandomBytes
from ottla.coordination.interface.store import (
    BadVersion,
    Check,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Session,
    Set,
    Store,
)
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import (
    decode_broker,
    decode_cluster_id,
    decode_cluster_secret,
    encode_broker,
    encode_cluster_id,
    encode_cluster_secret,
    topic_id_of,
)

# The content of a removed broker's epoch node; its next registration overwrites it.
_REMOVED = b"removed"


async def prepare(store: Store, beside: Sequence[Create] = ()) -> None:
    """Create the missing parent nodes of all other nodes, in one write for speed.

    In a new store, the nodes in `beside` are created in the same write.
    """
    wanted = {
        "/".join(parts[:length])
        for parts in (path.split("/") for path in paths.FOUNDATIONS)
        for length in range(2, len(parts) + 1)
    }
    missing = [path for path in sorted(wanted) if await store.get(path) is None]
    if not missing:
        return
    operations = [Create(path) for path in missing]
    if len(missing) == len(wanted):
        operations += beside
    try:
        await store.multi(operations)
    except NodeExists:
        # Another broker may be starting at the same time.
        for path in missing:
            await store.ensure(path)


def new_cluster_id(random_bytes: Callable[[int], bytes] = random_bytes) -> str:
    """Return a new random cluster id in Kafka's format."""
    return urlsafe_b64encode(topic_id_of(random_bytes(16)).bytes).rstrip(b"=").decode()


async def known_cluster_id(store: Store) -> str | None:
    """Return the cluster id in the store; None if there is none."""
    node = await store.get(paths.CLUSTER_ID)
    return None if node is None else decode_cluster_id(paths.CLUSTER_ID, node.data)


def name_cluster(cluster_id: str) -> Create:
    """Return the operation that stores the cluster id."""
    return Create(paths.CLUSTER_ID, encode_cluster_id(cluster_id))


async def agree_on_cluster_id(store: Store, proposed: str) -> str:
    """Return the cluster id in the store; if there is none, store `proposed`.

    `proposed` is the cluster id in the data folders, or a new one. The caller checks that the
    result matches the data folders.
    """
    known = await known_cluster_id(store)
    if known is not None:
        return known
    try:
        await store.multi([name_cluster(proposed)])
    except NodeExists:
        known = await known_cluster_id(store)
        assert known is not None, "the cluster's id is never deleted"
        return known
    return proposed


async def known_brokers(store: Store) -> dict[BrokerId, BrokerImage]:
    """Read the last registrations of all brokers that were not removed, alive or not.

    Raises StoreError.
    """
    nodes = await store.subtree(paths.BROKER_EPOCHS)
    brokers = [
        decode_broker(path, node.data, node.version + 1)
        for path, node in nodes.items()
        if path != paths.BROKER_EPOCHS and node.data != _REMOVED
    ]
    return {broker.id: broker for broker in brokers}


async def known_racks(store: Store) -> dict[BrokerId, str | None]:
    """Read the racks of all `known_brokers`. Raises StoreError."""
    return {broker.id: broker.rack for broker in (await known_brokers(store)).values()}


async def remove(store: Store, broker_id: BrokerId) -> None:
    """Remove a broker that stays away for good; it may register again later.

    Raises OttlaError: BROKER_ID_NOT_REGISTERED if it is unknown, INVALID_REQUEST if it is alive.
    Also raises StoreError.
    """
    path = paths.broker_epoch(broker_id)
    while True:
        epoch = await store.get(path)
        if epoch is None or epoch.data == _REMOVED:
            raise OttlaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not registered."
            )
        if await store.get(paths.broker(broker_id)) is not None:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"Broker {broker_id} is alive: stop it before it is removed.",
            )
        try:
            # The node stays, because its version counts registrations.
            await store.multi([Set(path, _REMOVED, epoch.version)])
        except BadVersion:
            continue
        return


async def register(
    store: Store,
    session: Session,
    broker: BrokerImage,
    now_ms: int,
    *,
    clean: bool = True,
    boot_id: str = "",
) -> int:
    """Register the broker for as long as its session lasts; return its broker epoch.

    `clean` is True if no record was lost since the last registration (R-11). Otherwise the same
    write creates a mark of the unclean stop for the controller. Raises NodeExists if a live broker
    has the same id.
    """
    while True:
        data = encode_broker(broker, now_ms, boot_id)
        alive = Create(paths.broker(broker.id), data, session)
        epoch = await _set_or_create(store, paths.broker_epoch(broker.id), data)
        operations: list[Operation] = [epoch, alive]
        if not clean and isinstance(epoch, Set):
            # A broker that never registered is in no ISR or ELR.
            operations.append(await _set_or_create(store, paths.unclean_stop(broker.id)))
        try:
            result = (await store.multi(operations))[0]
        except (NodeExists, NoNode) as error:
            if error.path == paths.broker(broker.id):
                raise
            continue
        return result + 1 if isinstance(result, int) else 1


def check_registration(broker_id: BrokerId, broker_epoch: int) -> Check:
    """Return a check for `multi` that the broker has not registered again since (S12)."""
    return Check(paths.broker_epoch(broker_id), broker_epoch - 1)


def check_controller(controller_epoch: int) -> Check:
    """Return a check for `multi` that the controller epoch is still this one (S14)."""
    return Check(paths.CONTROLLER_EPOCH, controller_epoch)


async def _set_or_create(store: Store, path: str, data: bytes = b"") -> Operation:
    return Create(path, data) if await store.get(path) is None else Set(path, data)


_SECRET_BYTES = 32


def new_secret(random_bytes: RandomBytes) -> Create:
    """Return the operation that stores a new secret."""
    secret = random_bytes(_SECRET_BYTES)
    return Create(paths.CLUSTER_SECRET, encode_cluster_secret(secret))


async def agree_on_secret(store: Store, random_bytes: RandomBytes) -> bytes:
    """Read the cluster's secret, or create it. Raises OttlaError if it is damaged."""
    node = await store.get(paths.CLUSTER_SECRET)
    if node is None:
        with contextlib.suppress(NodeExists):
            # Another broker may be starting at the same time.
            await store.multi([new_secret(random_bytes)])
        node = await store.get(paths.CLUSTER_SECRET)
        assert node is not None, "the cluster's secret is never deleted"
    return decode_cluster_secret(paths.CLUSTER_SECRET, node.data)
