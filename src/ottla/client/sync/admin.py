"""Administration as plain calls."""

from collections.abc import Iterable
from typing import Self, Unpack

from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.admin import (
    AdminOptions,
    access,
    clients,
    cluster,
    compaction,
    configs,
    credentials,
    decisions,
    groups,
    logs,
    partitions,
    topics,
    transactions,
    undo,
)
from ottla.client.common.other_names import OtherNames
from ottla.client.sync.loop_thread import LoopThread, waits


class _Part:
    """A part of `Admin`: its asynchronous twin, and the thread whose loop runs the twin."""

    def __init__(self, thread: LoopThread, twin: object) -> None:
        self._thread = thread
        self._twin = twin


class Topics(_Part):
    """See `ottla.client.admin.topics.Topics`."""

    create_all = waits(topics.Topics.create_all)
    create = waits(topics.Topics.create)
    all = waits(topics.Topics.all)
    list = waits(topics.Topics.list)
    describe = waits(topics.Topics.describe)
    describe_all = waits(topics.Topics.describe_all)
    alter = waits(topics.Topics.alter)
    create_partitions = waits(topics.Topics.create_partitions)
    delete = waits(topics.Topics.delete)


class Partitions(_Part):
    """See `ottla.client.admin.partitions.Partitions`."""

    describe = waits(partitions.Partitions.describe)
    min_isr = waits(partitions.Partitions.min_isr)
    elect_leaders = waits(partitions.Partitions.elect_leaders)
    reassign = waits(partitions.Partitions.reassign)
    reassignments = waits(partitions.Partitions.reassignments)


class Configs(_Part):
    """See `ottla.client.admin.configs.Configs`."""

    describe = waits(configs.Configs.describe)
    describe_topics = waits(configs.Configs.describe_topics)
    alter = waits(configs.Configs.alter)


class Groups(_Part):
    """See `ottla.client.admin.groups.Groups`."""

    all = waits(groups.Groups.all)
    list = waits(groups.Groups.list)
    describe = waits(groups.Groups.describe)
    describe_all = waits(groups.Groups.describe_all)
    delete = waits(groups.Groups.delete)
    remove_members = waits(groups.Groups.remove_members)
    offsets = waits(groups.Groups.offsets)
    set_offsets = waits(groups.Groups.set_offsets)
    delete_offsets = waits(groups.Groups.delete_offsets)


class ShareGroups(_Part):
    """See `ottla.client.admin.groups.ShareGroups`."""

    describe = waits(groups.ShareGroups.describe)
    offsets = waits(groups.ShareGroups.offsets)
    set_offsets = waits(groups.ShareGroups.set_offsets)
    delete_offsets = waits(groups.ShareGroups.delete_offsets)


class Logs(_Part):
    """See `ottla.client.admin.logs.Logs`."""

    directories = waits(logs.Logs.directories)
    offsets = waits(logs.Logs.offsets)
    stable_offsets = waits(logs.Logs.stable_offsets)
    delete_records = waits(logs.Logs.delete_records)
    producers = waits(logs.Logs.producers)
    account = waits(logs.Logs.account)
    retention = waits(logs.Logs.retention)


class Transactions(_Part):
    """See `ottla.client.admin.transactions.Transactions`."""

    all = waits(transactions.Transactions.all)
    describe = waits(transactions.Transactions.describe)
    open_in = waits(transactions.Transactions.open_in)
    abort_in_partition = waits(transactions.Transactions.abort_in_partition)
    abort = waits(transactions.Transactions.abort)


class Quotas(_Part):
    """See `ottla.client.admin.access.Quotas`."""

    all = waits(access.Quotas.all)
    alter = waits(access.Quotas.alter)


class AccessRules(_Part):
    """See `ottla.client.admin.access.AccessRules`."""

    find = waits(access.AccessRules.find)
    create = waits(access.AccessRules.create)
    delete = waits(access.AccessRules.delete)


class Users(_Part):
    """See `ottla.client.admin.credentials.Users`."""

    find = waits(credentials.Users.find)
    set_password = waits(credentials.Users.set_password)
    remove = waits(credentials.Users.remove)
    end_sessions = waits(credentials.Users.end_sessions)


class Tokens(_Part):
    """See `ottla.client.admin.credentials.Tokens`."""

    create = waits(credentials.Tokens.create)
    find = waits(credentials.Tokens.find)
    find_one = waits(credentials.Tokens.find_one)
    renew = waits(credentials.Tokens.renew)
    expire = waits(credentials.Tokens.expire)


class Brokers(_Part):
    """See `ottla.client.admin.cluster.Brokers`."""

    describe = waits(cluster.Brokers.describe)
    brokers = waits(cluster.Brokers.brokers)
    remove_broker = waits(cluster.Brokers.remove_broker)


class Compaction(_Part):
    """See `ottla.client.admin.compaction.Compaction`."""

    describe = waits(compaction.Compaction.describe)
    cleaners = waits(compaction.Compaction.cleaners)
    describe_topic = waits(compaction.Compaction.describe_topic)


class Clients(_Part):
    """See `ottla.client.admin.clients.Clients`."""

    usage = waits(clients.Clients.usage)
    delays = waits(clients.Clients.delays)


class Undo(_Part):
    """See `ottla.client.admin.undo.Undo`."""

    all = waits(undo.Undo.all)
    restore_topic = waits(undo.Undo.restore_topic)


class Decisions(_Part):
    """See `ottla.client.admin.decisions.Decisions`."""

    describe = waits(decisions.Decisions.describe)


class Rebalances(_Part):
    """See `ottla.client.admin.decisions.Rebalances`."""

    describe = waits(decisions.Rebalances.describe)


class Admin(OtherNames):
    """`ottla.client.admin.Admin` as plain calls: the same parts with the same methods."""

    def __init__(
        self, bootstrap_servers: str | Iterable[str], **options: Unpack[AdminOptions]
    ) -> None:
        self._thread = thread = LoopThread("ottla-admin")
        self._closed = False
        self._admin = admin = thread.make(lambda: AsyncAdmin(bootstrap_servers, **options))
        self.topics = Topics(thread, admin.topics)
        self.partitions = Partitions(thread, admin.partitions)
        self.configs = Configs(thread, admin.configs)
        self.groups = Groups(thread, admin.groups)
        self.share_groups = ShareGroups(thread, admin.share_groups)
        self.logs = Logs(thread, admin.logs)
        self.transactions = Transactions(thread, admin.transactions)
        self.quotas = Quotas(thread, admin.quotas)
        self.acls = AccessRules(thread, admin.acls)
        self.users = Users(thread, admin.users)
        self.tokens = Tokens(thread, admin.tokens)
        self.cluster = Brokers(thread, admin.cluster)
        self.compaction = Compaction(thread, admin.compaction)
        self.clients = Clients(thread, admin.clients)
        self.decisions = Decisions(thread, admin.decisions)
        self.undo = Undo(thread, admin.undo)
        self.rebalances = Rebalances(thread, admin.rebalances)

    def __repr__(self) -> str:
        return repr(self._admin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        if self._closed:
            return
        self._closed = True
        self._thread.end(self._admin.close())
