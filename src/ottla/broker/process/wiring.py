"""Builds the parts of a broker from the bottom up, enters each, and subscribes them to events."""

from contextlib import AsyncExitStack

from ottla.base.settings import BrokerSettings
from ottla.broker.access.part import AccessPart
from ottla.broker.audit.audit import new_audit
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.cluster.control import Control
from ottla.broker.cluster.part import ClusterPart
from ottla.broker.configs.part import ConfigsPart, StoredPart
from ottla.broker.controller import Controller
from ottla.broker.groups import Groups
from ottla.broker.login.part import LoginPart
from ottla.broker.partitions.failed_replicas import FailedReplicas
from ottla.broker.partitions.log_config import election_rules
from ottla.broker.partitions.upkeep import Upkeep
from ottla.broker.process.hosted import Hosted
from ottla.broker.process.parts import Parts
from ottla.broker.process.seams import Seams
from ottla.broker.process.storage import Storage
from ottla.broker.quotas.quotas import Quotas
from ottla.broker.replication.replication import Replication
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.retention.readers import Readers
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.stop_mode import StopMode
from ottla.broker.share.part import SharePart
from ottla.broker.topics.part import MetadataPart
from ottla.broker.transactions.part import TransactionPart
from ottla.coordination.store import Session
from ottla.metadata.decisions import Decisions


async def enter_parts(
    stack: AsyncExitStack,
    settings: BrokerSettings,
    seams: Seams,
    runtime: Runtime,
    storage: Storage,
    stop_mode: StopMode,
) -> Parts:
    """Every part of a broker whose storage is open; no client is served yet. Raises OttlaError."""
    enter = stack.enter_async_context
    clock, store, directories = runtime.clock, storage.store, storage.log_directories
    cluster = await enter(
        ClusterPart(
            settings,
            clock,
            storage.filesystem,
            seams.dialer,
            store,
            storage.cluster_id,
            storage.secret,
        )
    )
    # Left before the session ends, after all parts that may set a deadline.
    await enter(runtime)
    view, peers, decisions = cluster.view, cluster.peers, Decisions()
    replication = await enter(
        Replication(
            settings,
            runtime,
            view,
            store,
            directories,
            peers,
            decisions,
            cluster.isolated,
            stop_mode,
            worker=seams.worker,
            rng=seams.rng,
        )
    )
    partitions, flusher, removals = (
        replication.partitions,
        replication.flusher,
        replication.removals,
    )
    groups = await enter(Groups(view, runtime, settings, partitions))
    transactions = await enter(TransactionPart(settings, runtime, cluster, partitions, groups))
    host = Hosted(replication, groups)
    metadata = await enter(MetadataPart(settings, clock, cluster, partitions, directories, host))
    share = await enter(SharePart(settings, runtime, cluster, partitions, groups, metadata.topics))
    control = Control(view.broker_id, peers, metadata.orders)
    controller = await enter(
        Controller(
            store,
            view.broker_id,
            settings,
            clock,
            decisions,
            lambda topic: election_rules(topic, view.image, settings),
            control.deliver,
            control.reaches,
            control.answers,
            cluster.isolated.emit,
        )
    )
    quotas = await enter(Quotas(settings, store, clock, runtime.loop))
    access = await enter(AccessPart(settings, clock, view, store))
    audit = new_audit(settings, storage.filesystem, runtime, access.authorizer)
    if audit is not None:
        await enter(audit)
    login = await enter(
        LoginPart(settings, runtime, store, storage.secret, audit, lambda: controller.is_active)
    )
    stored: list[StoredPart] = [quotas, login.users]
    stored += [part for part in (access.acls, login.tokens) if part is not None]
    configs = await enter(
        ConfigsPart(settings, clock, cluster, metadata, host, stored, controller.on_rules_changed)
    )
    upkeep = await enter(Upkeep(settings, runtime, partitions, directories, flusher))
    readers = Readers(view, clock, groups, peers, share.persister.start_offset)
    retention = await enter(
        RetentionKeeper(
            settings, runtime, view, partitions, directories, removals, decisions, readers
        )
    )
    cleaner = await enter(Cleaner(settings, runtime, partitions, directories, flusher, removals))
    parts = Parts(
        cluster,
        replication,
        groups,
        transactions,
        metadata,
        share,
        controller,
        quotas,
        access,
        audit,
        login,
        configs,
        upkeep,
        retention,
        cleaner,
    )
    _subscribe(parts, runtime)
    return parts


def _subscribe(parts: Parts, runtime: Runtime) -> None:
    """Subscribe parts to the events of others."""
    cluster, replication, controller = parts.cluster, parts.replication, parts.controller
    on_role = replication.roles.on_role
    on_role.subscribe(parts.groups.on_role)
    on_role.subscribe(parts.transactions.coordinator.on_role)
    on_role.subscribe(parts.share.on_role)
    failed_replicas = FailedReplicas(cluster.store, cluster.view.broker_id, runtime.spawn)
    replication.partitions.on_failed.subscribe(failed_replicas.tell)
    cluster.peers.on_lost.subscribe(controller.suspect)

    async def on_joined(session: Session) -> None:
        # Roles come with this registration, from a controller that may be this very broker.
        replication.on_registered(cluster.fence.broker_epoch, session)
        await controller.stand(session)

    cluster.on_joined = on_joined
    cluster.registration_lost.subscribe(replication.on_unregistered)
    cluster.registration_lost.subscribe(controller.stand_down)
    cluster.isolated.subscribe(lambda: runtime.spawn(cluster.membership.withdraw()))
    image_changed = parts.metadata.image_changed
    image_changed.subscribe(
        lambda: cluster.departed.on_image(cluster.view.image.brokers, runtime.clock.monotonic_ms())
    )
    image_changed.subscribe(cluster.peers.on_image)
    image_changed.subscribe(parts.transactions.on_image)
