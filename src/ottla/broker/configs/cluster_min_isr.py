"""`min.insync.replicas` of the cluster: one number in the store, as in Kafka since 4.1 (KIP-966).

It determines which replicas are eligible leaders, so all brokers must use the same number. The
first broker writes the number from its own settings; later changes apply to all brokers at once.
"""

import logging

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BROKER_SETTINGS, BrokerSettings
from ottla.broker.configs.changes import change_notice
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
from ottla.metadata.image import ALL_BROKERS
from ottla.metadata.nodes import decode_configs, encode_configs

_log = logging.getLogger(__name__)

_NAME = "min.insync.replicas"
_PATH = paths.broker_config(ALL_BROKERS)


def initial_min_isr(settings: BrokerSettings) -> Create:
    """Return the operation that sets the number in a new cluster."""
    return Create(_PATH, encode_configs({_NAME: _own(settings)}))


async def agree_on_min_isr(store: Store, settings: BrokerSettings, now_ms: int) -> None:
    """Write this broker's number if the cluster has none yet; warn if the cluster's differs.

    Numbers for single brokers, which earlier versions allowed, are removed. Raises StoreError.
    """
    cluster = await _agreed(store, settings)
    for broker in await store.children(paths.CONFIG_BROKERS):
        if broker != ALL_BROKERS:
            await _remove_own(store, broker, cluster, now_ms)


async def _remove_own(store: Store, broker: str, cluster: str, now_ms: int) -> None:
    """Remove a number stored for one broker, which would use another minimum for acks=all."""
    path = paths.broker_config(broker)
    while (node := await store.get(path)) is not None:
        held = decode_configs(path, node.data)
        number = held.pop(_NAME, None)
        if number is None:
            return
        change = Set(path, encode_configs(held), node.version)
        try:
            await store.multi([change, change_notice(path, now_ms)])
        except (BadVersion, NoNode):
            # Another broker starts at the same time.
            continue
        _log.warning(
            "%s=%s, stored for broker %s by an earlier version, is removed: the cluster has %s; "
            "change it for all brokers with: ottla config set broker all %s=...",
            *(_NAME, number, broker, cluster, _NAME),
        )


async def _agreed(store: Store, settings: BrokerSettings) -> str:
    own = _own(settings)
    while True:
        node = await store.get(_PATH)
        held = {} if node is None else decode_configs(_PATH, node.data)
        if _NAME in held:
            break
        data = encode_configs({**held, _NAME: own})
        change: Operation = Create(_PATH, data) if node is None else Set(_PATH, data, node.version)
        try:
            await store.multi([change])
        except (BadVersion, NodeExists, NoNode):
            # Another broker starts at the same time.
            continue
        return own
    if _NAME in settings.static and held[_NAME] != own:
        _log.warning(
            "%s=%s in this broker's settings has no effect: the cluster has %s; change it for all "
            "brokers with: ottla config set broker all %s=%s",
            *(_NAME, own, held[_NAME], _NAME, own),
        )
    return held[_NAME]


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
