"""A broker's place in its cluster: the cluster's id, the broker's own node, the first image."""

from base64 import urlsafe_b64encode
from collections.abc import Callable

from ottla.base.chance import random_bytes
from ottla.coordination.store import Create, NodeExists, Session, Store
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage
from ottla.metadata.nodes import decode_cluster_id, encode_broker, encode_cluster_id
from ottla.metadata.topic_id import topic_id_of


async def prepare(store: Store) -> None:
    """Make the nodes everything else hangs from, where they lack: in one write, for speed."""
    wanted = {
        "/".join(parts[:length])
        for parts in (path.split("/") for path in paths.FOUNDATIONS)
        for length in range(2, len(parts) + 1)
    }
    missing = [path for path in sorted(wanted) if await store.get(path) is None]
    if not missing:
        return
    try:
        await store.multi([Create(path) for path in missing])
    except NodeExists:
        # Another broker starts at the same time.
        for path in missing:
            await store.ensure(path)


async def agree_on_cluster_id(
    store: Store, proposed: str | None, random_bytes: Callable[[int], bytes] = random_bytes
) -> str:
    """The cluster's id: the one in the store, else `proposed`, else a new one.

    `proposed` is what the data folders say. Whether both agree is for the caller to check.
    """
    if proposed is None:
        proposed = urlsafe_b64encode(topic_id_of(random_bytes(16)).bytes).rstrip(b"=").decode()
    try:
        await store.multi([Create(paths.CLUSTER_ID, encode_cluster_id(proposed))])
    except NodeExists:
        node = await store.get(paths.CLUSTER_ID)
        assert node is not None, "the cluster's id is never deleted"
        return decode_cluster_id(paths.CLUSTER_ID, node.data)
    return proposed


async def register(store: Store, session: Session, broker: BrokerImage, now_ms: int) -> None:
    """Announce the broker as alive for as long as its session lasts.

    Raises NodeExists where another live broker has the same id.
    """
    await store.multi([Create(paths.broker(broker.id), encode_broker(broker, now_ms), session)])
