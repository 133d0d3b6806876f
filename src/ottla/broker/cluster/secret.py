"""The secret, kept in the store, by which brokers of one cluster recognise each other."""

import contextlib

from ottla.broker.cluster.handshake import RandomBytes
from ottla.coordination.interface.store import Create, NodeExists, Store
from ottla.metadata import paths
from ottla.metadata.nodes import decode_cluster_secret, encode_cluster_secret

_SECRET_BYTES = 32


def new_secret(random_bytes: RandomBytes) -> Create:
    """The operation that stores a new secret."""
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
