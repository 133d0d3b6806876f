"""The cluster's features: read from the image, changed through the store."""

import logging
from collections.abc import Mapping, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.metadata_updates import MetadataUpdates
from ottla.broker.configs.changes import OnChanged, change_notice
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Store,
)
from ottla.metadata import paths
from ottla.metadata.features import FeatureUpdate, updated
from ottla.metadata.image import ClusterImage
from ottla.metadata.nodes import decode_features, encode_features, features_epoch

_log = logging.getLogger(__name__)
_ENTITY = paths.CONFIG_FEATURES.removeprefix("/config/")


class Features:
    """Changes feature levels, and applies changes by other brokers."""

    def __init__(
        self, view: ClusterView, updates: MetadataUpdates, store: Store, clock: Clock
    ) -> None:
        self._view = view
        self._updates = updates
        self._store = store
        self._clock = clock

    async def update(self, updates: Sequence[FeatureUpdate], *, validate_only: bool) -> None:
        """Apply all `updates`, or none. Raises OttlaError(INVALID_UPDATE_VERSION), StoreError."""
        while True:
            node = await self._store.get(paths.CONFIG_FEATURES)
            data = b"" if node is None else node.data
            levels = updated(decode_features(paths.CONFIG_FEATURES, data), updates)
            if validate_only or not updates:
                return
            change: Operation = (
                Create(paths.CONFIG_FEATURES, encode_features(levels))
                if node is None
                else Set(paths.CONFIG_FEATURES, encode_features(levels), node.version)
            )
            notice = change_notice(paths.CONFIG_FEATURES, self._clock.now_ms())
            try:
                await self._store.multi([change, notice])
            except (BadVersion, NodeExists, NoNode):
                # Another broker changed them meanwhile.
                continue
            await self._take(levels, features_epoch(0 if node is None else node.version + 1))
            _log.info("features are now %s", levels)
            return

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback that applies changed features, and passes other changes to `others`."""

        async def on_changed(entity: str) -> None:
            if entity != _ENTITY:
                await others(entity)
                return
            node = await self._store.get(paths.CONFIG_FEATURES)
            if node is not None:
                levels = decode_features(paths.CONFIG_FEATURES, node.data)
                await self._take(levels, features_epoch(node.version))

        return on_changed

    async def _take(self, levels: Mapping[str, int], epoch: int) -> None:
        # Wait for an update in progress, which was derived from an image without these levels.
        async with self._updates.changing:
            image = self._view.image
            if epoch > image.features_epoch:
                self._updates.show(image.with_features(levels, epoch))


def require_feature(image: ClusterImage, feature: str) -> None:
    """Raise OttlaError(UNSUPPORTED_VERSION) if a feature is disabled."""
    if image.features.get(feature, 0) == 0:
        raise OttlaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"{feature} is 0 in this cluster: the protocol is switched off; raise it with "
            "kafka-features upgrade",
        )
