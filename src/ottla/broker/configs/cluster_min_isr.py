"""`min.insync.replicas` of the cluster: one number in the store, as in Kafka since 4.1 (KIP-966).

It determines which replicas are eligible leaders, so all brokers must use the same number. The
first broker writes the number from its own settings; later changes apply to all brokers at once.
"""

import logging

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, BrokerSettings
from ottla.coordination.interface.store import Create, Store
from ottla.metadata import paths
from ottla.metadata.image import ALL_BROKERS
from ottla.metadata.nodes import decode_configs, encode_configs

_log = logging.getLogger(__name__)

_NAME = "min.insync.replicas"
_PATH = paths.broker_config(ALL_BROKERS)


def initial_min_isr(settings: BrokerSettings) -> Create:
    """Return the operation that sets the number in a new cluster."""
    return Create(_PATH, encode_configs({_NAME: _own(settings)}))


async def warn_of_own_min_isr(store: Store, settings: BrokerSettings) -> None:
    """Warn if this broker's own settings have another number than the cluster. Raises StoreError.

    The cluster has a number from its beginning, and it cannot be removed.
    """
    node = await store.get(_PATH)
    held = {} if node is None else decode_configs(_PATH, node.data)
    own = _own(settings)
    if _NAME in settings.static and held.get(_NAME, own) != own:
        _log.warning(
            "%s=%s in this broker's settings has no effect: the cluster has %s; change it for all "
            "brokers with: ottla config set broker all %s=%s",
            *(_NAME, own, held[_NAME], _NAME, own),
        )


def check_min_isr_change(broker: str, before: str | None, after: str | None) -> None:
    """Raise OttlaError(INVALID_CONFIG) if a change of `min.insync.replicas` is not allowed.

    One broker cannot get a different number, and the cluster's number cannot be removed. `broker`
    is empty for the settings of all brokers.
    """
    if broker and after is not None and after != before:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"Broker-level {_NAME} cannot be altered while ELR is enabled; alter it for all "
            "brokers.",
        )
    if not broker and before is not None and after is None:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"Cluster-level {_NAME} cannot be removed while ELR is enabled; set it to "
            f"{BROKER_SETTINGS[_NAME].default} for the default.",
        )


def _own(settings: BrokerSettings) -> str:
    return settings.static.get(_NAME, str(BROKER_SETTINGS[_NAME].default))
