"""Administration as plain calls."""

from collections.abc import Callable, Coroutine, Iterable
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from ottla.client.admin import Admin as AsyncAdmin
from ottla.client.admin import AdminOptions, parts
from ottla.client.sync.loop_thread import LoopThread

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Plain(Generic[Parameters, Result]):
    """A method of an asynchronous part as a method that waits for its result.

    A descriptor, so that names, parameters and results stay those of the asynchronous method for
    type checkers, `help` and `dir`.
    """

    def __init__(
        self, method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]
    ) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, part: None, owner: type) -> Self: ...
    @overload
    def __get__(self, part: "_Part", owner: type) -> Callable[Parameters, Result]: ...
    def __get__(self, part: "_Part | None", owner: type) -> "Self | Callable[Parameters, Result]":
        if part is None:
            return self

        def call(*arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
            return part.thread.call(self._method(part.twin, *arguments, **named))

        return update_wrapper(call, self._method)


class _Part:
    """A part of `Admin`: its asynchronous twin, and the thread whose loop that lives in."""

    def __init__(self, thread: LoopThread, twin: object) -> None:
        self.thread = thread
        self.twin = twin


class Topics(_Part):
    """See `ottla.client.admin.topics.Topics`."""

    create_all = _Plain(parts.Topics.create_all)
    create = _Plain(parts.Topics.create)
    all = _Plain(parts.Topics.all)
    describe = _Plain(parts.Topics.describe)
    grow = _Plain(parts.Topics.grow)
    delete = _Plain(parts.Topics.delete)


class Partitions(_Part):
    """See `ottla.client.admin.partitions.Partitions`."""

    standings = _Plain(parts.Partitions.standings)
    min_isr = _Plain(parts.Partitions.min_isr)
    elect_leaders = _Plain(parts.Partitions.elect_leaders)
    reassign = _Plain(parts.Partitions.reassign)
    reassignments = _Plain(parts.Partitions.reassignments)


class Configs(_Part):
    """See `ottla.client.admin.configs.Configs`."""

    describe = _Plain(parts.Configs.describe)
    alter = _Plain(parts.Configs.alter)


class Groups(_Part):
    """See `ottla.client.admin.groups.Groups`."""

    all = _Plain(parts.Groups.all)
    describe = _Plain(parts.Groups.describe)
    delete = _Plain(parts.Groups.delete)
    remove_members = _Plain(parts.Groups.remove_members)
    offsets = _Plain(parts.Groups.offsets)
    set_offsets = _Plain(parts.Groups.set_offsets)
    delete_offsets = _Plain(parts.Groups.delete_offsets)


class ShareGroups(_Part):
    """See `ottla.client.admin.share_groups.ShareGroups`."""

    describe = _Plain(parts.ShareGroups.describe)
    positions = _Plain(parts.ShareGroups.positions)
    alter_positions = _Plain(parts.ShareGroups.alter_positions)
    delete_positions = _Plain(parts.ShareGroups.delete_positions)


class Logs(_Part):
    """See `ottla.client.admin.logs.Logs`."""

    directories = _Plain(parts.Logs.directories)
    offsets = _Plain(parts.Logs.offsets)
    stable_offsets = _Plain(parts.Logs.stable_offsets)
    delete_records = _Plain(parts.Logs.delete_records)
    producers = _Plain(parts.Logs.producers)
    account = _Plain(parts.Logs.account)
    retention = _Plain(parts.Logs.retention)


class Transactions(_Part):
    """See `ottla.client.admin.transactions.Transactions`."""

    all = _Plain(parts.Transactions.all)
    describe = _Plain(parts.Transactions.describe)
    open_in = _Plain(parts.Transactions.open_in)
    abort_in_partition = _Plain(parts.Transactions.abort_in_partition)
    abort = _Plain(parts.Transactions.abort)


class Quotas(_Part):
    """See `ottla.client.admin.quotas.Quotas`."""

    all = _Plain(parts.Quotas.all)
    alter = _Plain(parts.Quotas.alter)


class Brokers(_Part):
    """See `ottla.client.admin.cluster.Brokers`."""

    describe = _Plain(parts.Brokers.describe)
    brokers = _Plain(parts.Brokers.brokers)
    remove_broker = _Plain(parts.Brokers.remove_broker)


class Compaction(_Part):
    """See `ottla.client.admin.compaction.Compaction`."""

    of = _Plain(parts.Compaction.of)
    cleaners = _Plain(parts.Compaction.cleaners)
    of_topic = _Plain(parts.Compaction.of_topic)


class Decisions(_Part):
    """See `ottla.client.admin.decisions.Decisions`."""

    about = _Plain(parts.Decisions.about)


class Rebalances(_Part):
    """See `ottla.client.admin.rebalances.Rebalances`."""

    of = _Plain(parts.Rebalances.of)


class Admin:
    """`ottla.client.admin.Admin` as plain calls: the same parts with the same methods."""

    def __init__(self, bootstrap: str | Iterable[str], options: AdminOptions | None = None) -> None:
        self._thread = thread = LoopThread("ottla-admin")
        self._closed = False
        self._admin = admin = thread.make(lambda: AsyncAdmin(bootstrap, options))
        self.topics = Topics(thread, admin.topics)
        self.partitions = Partitions(thread, admin.partitions)
        self.configs = Configs(thread, admin.configs)
        self.groups = Groups(thread, admin.groups)
        self.share_groups = ShareGroups(thread, admin.share_groups)
        self.logs = Logs(thread, admin.logs)
        self.transactions = Transactions(thread, admin.transactions)
        self.quotas = Quotas(thread, admin.quotas)
        self.cluster = Brokers(thread, admin.cluster)
        self.compaction = Compaction(thread, admin.compaction)
        self.decisions = Decisions(thread, admin.decisions)
        self.rebalances = Rebalances(thread, admin.rebalances)

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
