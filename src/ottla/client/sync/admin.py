"""Administration as plain calls."""

from collections.abc import Iterable
from typing import Self, Unpack

from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.admin import AdminOptions, parts
from ottla.client.common.call_check import checks
from ottla.client.common.other_names import OtherNames
from ottla.client.sync.blocking import waits
from ottla.client.sync.loop_thread import LoopThread


class _Part:
    """A part of `Admin`: its asynchronous twin, and the thread whose loop runs the twin."""

    def __init__(self, thread: LoopThread, twin: object) -> None:
        self._thread = thread
        self._twin = twin


class Topics(_Part):
    """See `ottla.client.admin.topics.Topics`."""

    create_all = waits(parts.Topics.create_all)
    create = waits(parts.Topics.create)
    all = waits(parts.Topics.all)
    list = waits(parts.Topics.list)
    describe = waits(parts.Topics.describe)
    describe_all = waits(parts.Topics.describe_all)
    alter = waits(parts.Topics.alter)
    grow = waits(parts.Topics.grow)
    delete = waits(parts.Topics.delete)


class Partitions(_Part):
    """See `ottla.client.admin.partitions.Partitions`."""

    standings = waits(parts.Partitions.standings)
    min_isr = waits(parts.Partitions.min_isr)
    elect_leaders = waits(parts.Partitions.elect_leaders)
    reassign = waits(parts.Partitions.reassign)
    reassignments = waits(parts.Partitions.reassignments)


class Configs(_Part):
    """See `ottla.client.admin.configs.Configs`."""

    describe = waits(parts.Configs.describe)
    alter = waits(parts.Configs.alter)


class Groups(_Part):
    """See `ottla.client.admin.groups.Groups`."""

    all = waits(parts.Groups.all)
    list = waits(parts.Groups.list)
    describe = waits(parts.Groups.describe)
    describe_all = waits(parts.Groups.describe_all)
    delete = waits(parts.Groups.delete)
    remove_members = waits(parts.Groups.remove_members)
    offsets = waits(parts.Groups.offsets)
    set_offsets = waits(parts.Groups.set_offsets)
    delete_offsets = waits(parts.Groups.delete_offsets)


class ShareGroups(_Part):
    """See `ottla.client.admin.share_groups.ShareGroups`."""

    describe = waits(parts.ShareGroups.describe)
    positions = waits(parts.ShareGroups.positions)
    alter_positions = waits(parts.ShareGroups.alter_positions)
    delete_positions = waits(parts.ShareGroups.delete_positions)


class Logs(_Part):
    """See `ottla.client.admin.logs.Logs`."""

    directories = waits(parts.Logs.directories)
    offsets = waits(parts.Logs.offsets)
    stable_offsets = waits(parts.Logs.stable_offsets)
    delete_records = waits(parts.Logs.delete_records)
    producers = waits(parts.Logs.producers)
    account = waits(parts.Logs.account)
    retention = waits(parts.Logs.retention)


class Transactions(_Part):
    """See `ottla.client.admin.transactions.Transactions`."""

    all = waits(parts.Transactions.all)
    describe = waits(parts.Transactions.describe)
    open_in = waits(parts.Transactions.open_in)
    abort_in_partition = waits(parts.Transactions.abort_in_partition)
    abort = waits(parts.Transactions.abort)


class Quotas(_Part):
    """See `ottla.client.admin.quotas.Quotas`."""

    all = waits(parts.Quotas.all)
    alter = waits(parts.Quotas.alter)


class AccessRules(_Part):
    """See `ottla.client.admin.acls.AccessRules`."""

    find = waits(parts.AccessRules.find)
    create = waits(parts.AccessRules.create)
    delete = waits(parts.AccessRules.delete)


class Users(_Part):
    """See `ottla.client.admin.users.Users`."""

    find = waits(parts.Users.find)
    set_password = waits(parts.Users.set_password)
    remove = waits(parts.Users.remove)
    end_sessions = waits(parts.Users.end_sessions)


class Tokens(_Part):
    """See `ottla.client.admin.tokens.Tokens`."""

    create = waits(parts.Tokens.create)
    find = waits(parts.Tokens.find)
    find_one = waits(parts.Tokens.find_one)
    renew = waits(parts.Tokens.renew)
    expire = waits(parts.Tokens.expire)


class Brokers(_Part):
    """See `ottla.client.admin.cluster.Brokers`."""

    describe = waits(parts.Brokers.describe)
    brokers = waits(parts.Brokers.brokers)
    remove_broker = waits(parts.Brokers.remove_broker)


class Compaction(_Part):
    """See `ottla.client.admin.compaction.Compaction`."""

    of = waits(parts.Compaction.of)
    cleaners = waits(parts.Compaction.cleaners)
    of_topic = waits(parts.Compaction.of_topic)


class Decisions(_Part):
    """See `ottla.client.admin.decisions.Decisions`."""

    about = waits(parts.Decisions.about)


class Rebalances(_Part):
    """See `ottla.client.admin.rebalances.Rebalances`."""

    of = waits(parts.Rebalances.of)


class Admin(OtherNames):
    """`ottla.client.admin.Admin` as plain calls: the same parts with the same methods."""

    @checks
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
        self.decisions = Decisions(thread, admin.decisions)
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
