"""The audit log of a broker: turns reported events into lines, and counts repetitions."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode
from ottla.base.quantities import iso
from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import listen_addresses
from ottla.broker.audit.files import AuditFiles, AuditLimits
from ottla.broker.audit.sink import AuditSink
from ottla.broker.audit.writer import AuditWriter
from ottla.broker.cluster.admission import proven_broker
from ottla.broker.requests.auditing import AdminChange, Need, cluster_need
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.network.connection import Connection
from ottla.security.audit.chain import Event, bounded, canonical
from ottla.security.audit.repeats import Repeats
from ottla.security.authorizer import Authorizer, Ruling, RulingReason
from ottla.security.names import AclOperation, title
from ottla.storage.disk.filesystem import FileSystem
from ottla.wire.api import ApiKey, key_name

_RULES = {
    RulingReason.SUPER_USER: "super user",
    RulingReason.NO_RULE: "no rule",
    RulingReason.EVERYONE: "allow.everyone.if.no.acl.found",
}
_OF_ACLS = (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS)
_ALTER_CLUSTER = cluster_need(AclOperation.ALTER)


def is_audited(settings: BrokerSettings) -> bool:
    """Return whether there is an audit log; `auto` means if there is an authorizer or SASL."""
    wanted = settings.text("audit.log.enable")
    if wanted != "auto":
        return wanted == "true"
    if settings.text("authorizer.class.name"):
        return True
    return any(each.protocol.startswith("SASL") for each in listen_addresses(settings))


def new_audit(
    settings: BrokerSettings,
    filesystem: FileSystem,
    runtime: Runtime,
    authorizer: Authorizer | None,
) -> "Audit | None":
    """Create the audit log that the settings request; no file is opened yet."""
    if not is_audited(settings):
        return None
    limits = AuditLimits(
        settings.integer("audit.log.file.bytes"), settings.integer("audit.log.retention.bytes")
    )
    folder = settings.text("audit.log.dir") or settings.log_dirs[0]
    stamp = _stamp(settings.broker_id, runtime.clock)
    target = settings.text("audit.log.sink")
    sink = AuditSink(target, settings.broker_id) if target else None
    copy = None if sink is None else sink.put
    files = AuditFiles(filesystem, folder, settings.broker_id, limits, stamp, copy)
    writer = AuditWriter(files, stamp, runtime.clock.monotonic_ms, inline=filesystem.in_memory)
    has_logins = settings.flag("audit.log.logins.enable")
    return Audit(writer, runtime, authorizer, stamp, sink, has_logins=has_logins)


def _stamp(broker: int, clock: Clock) -> Callable[[Event], Event]:
    return lambda event: {**event, "broker": broker, "time": iso(clock.now_ms())}


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """Counts the lines that wait to be written, and those dropped because too many waited."""

    queued: int
    lost: int


class Audit(BrokerPart):
    """Implements `requests.auditing.Auditing`."""

    def __init__(
        self,
        writer: AuditWriter,
        runtime: Runtime,
        authorizer: Authorizer | None,
        stamp: Callable[[Event], Event],
        sink: AuditSink | None,
        *,
        has_logins: bool,
    ) -> None:
        """Create the audit log.

        `authorizer` is None if the broker has none; otherwise lines name the deciding ACL. With
        `has_logins`, successful logins are logged, too.
        """
        self._writer = writer
        self._runtime = runtime
        self._authorizer = authorizer
        self._stamp = stamp
        self._sink = sink
        self._has_logins = has_logins
        self._repeats = Repeats()
        self._timer: asyncio.TimerHandle | None = None
        self._is_open = False

    async def start(self) -> None:
        """Open the files. Raises OttlaError."""
        await self._runtime.in_thread(self._writer.start)
        self._is_open = True

    async def stop(self) -> None:
        """Write the pending counts and a final line, and close the files."""
        if not self._is_open:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._put_counts(self._repeats.end_all(self._now_ms()))
        self._put({"event": "stop"})
        await self._runtime.in_thread(self._writer.close)
        if self._sink is not None:
            await self._runtime.in_thread(self._sink.close)

    def status(self) -> AuditStatus:
        return AuditStatus(self._writer.queued, self._writer.lost)

    # -- reported events

    def denied(self, request: RequestContext, need: Need, rule: str = "") -> None:
        """See `Auditing`."""
        event = {**_origin(request), **_resource(need), "event": "denied", "outcome": "denied"}
        self._count(event, lambda: rule or self._rule(request, (need,)))

    def denied_more(self, request: RequestContext, count: int) -> None:
        """See `Auditing`."""
        event = {**_origin(request), "event": "denied", "outcome": "denied"}
        now_ms = self._now_ms()
        self._end_windows(now_ms)
        self._repeats.count(event, count, now_ms)
        self._arm(now_ms)

    def changed(
        self, request: RequestContext, change: AdminChange, rule: str = "", *, often: bool = False
    ) -> None:
        """See `Auditing`. If clients make such changes `often`, repetitions are only counted."""
        rule = rule or change.rule
        event = {
            **_origin(request),
            **_resource(change.needs[-1]),
            "event": "changed",
            "detail": change.detail,
            "outcome": _outcome(change.code),
        }
        if change.code:
            event["error"] = ErrorCode(change.code).name
        if event["outcome"] == "failed" or often:
            self._count(event, lambda: rule or self._rule(request, change.needs))
        else:
            self._write({**event, "rule": rule or self._rule(request, change.needs)})

    def holds(self, connection: Connection) -> bool:
        """See `Auditing`."""
        if proven_broker(connection) is not None:
            return False
        principal, now_ms = bounded(str(connection.principal)), self._now_ms()
        wait_ms = self._repeats.wait_ms(principal, connection.peer_host, now_ms)
        if not wait_ms:
            return False
        connection.hold()
        self._runtime.loop.call_later(wait_ms / 1000, connection.release)
        connection.refusals.log(
            (connection.peer_host, "audit log"),
            lambda: (
                f"changes of {connection.principal} from {connection.peer_host} wait: their lines"
                " in the audit log are too many bytes a second for one client"
            ),
        )
        return True

    def watch(
        self,
        request: RequestContext,
        changes_of: Callable[[Any], Iterable[AdminChange]],
        *,
        often: bool,
    ) -> None:
        """See `Auditing`."""
        if proven_broker(request.connection) is not None:
            return
        amend = request.amend
        # Found before the change, because the change may remove the very ACL that allows it.
        rule = self._rule(request, (_ALTER_CLUSTER,)) if request.header.api_key in _OF_ACLS else ""

        def on_answer(response: Any) -> None:
            # The errors of denied parts are added to the response later; denials have their own
            # lines.
            for change in changes_of(response):
                self.changed(request, change, rule, often=often)
            if amend is not None:
                amend(response)

        request.amend = on_answer

    def logged_in(self, connection: Connection, listener: str, mechanism: str) -> None:
        """See `Auditing`."""
        if self._has_logins:
            event = {**_client(connection, listener), "event": "login", "outcome": "done"}
            self._count({**event, "mechanism": mechanism}, None)

    def login_failed(self, connection: Connection, listener: str, cause: str, user: str) -> None:
        """See `Auditing`."""
        event = {
            **_client(connection, listener),
            "event": "login_failed",
            "cause": bounded(cause),
            "outcome": "denied",
        }
        self._count({**event, "user": bounded(user)} if user else event, None)

    # -- lines

    def _count(self, event: dict[str, Any], rule: Callable[[], str] | None) -> None:
        """Write a line for the first event of a kind, and count later events of that kind."""
        now_ms = self._now_ms()
        self._end_windows(now_ms)
        if self._repeats.admit(event, now_ms):
            if rule is not None:
                event["rule"] = rule()
            self._write(event)
        if self._repeats.is_full:
            self._put_counts(self._repeats.end_all(now_ms))
        self._arm(now_ms)

    def _write(self, event: Event) -> None:
        """Write a line for an event, charged to its client's budget."""
        now_ms = self._now_ms()
        self._repeats.wrote(event, len(canonical(event)), now_ms)
        self._put(event)
        self._arm(now_ms)

    def _arm(self, now_ms: int) -> None:
        ends_ms = self._repeats.ends_ms
        if self._timer is None and ends_ms is not None:
            delay_s = max(0, ends_ms - now_ms) / 1000
            self._timer = self._runtime.loop.call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        self._end_windows(now_ms)
        self._arm(now_ms)

    def _end_windows(self, now_ms: int) -> None:
        ends_ms = self._repeats.ends_ms
        if ends_ms is not None and ends_ms <= now_ms:
            self._put_counts(self._repeats.end(now_ms))

    def _put_counts(self, events: Iterable[Event]) -> None:
        now_ms = self._now_ms()
        for event in events:
            self._repeats.wrote_count(event, len(canonical(event)), now_ms)
            self._put(event)

    def _put(self, event: Event) -> None:
        self._writer.put(self._stamp(event))

    def _now_ms(self) -> int:
        return self._runtime.clock.monotonic_ms()

    def _rule(self, request: RequestContext, needs: tuple[Need, ...]) -> str:
        """Return the rule that decided about the first allowed need, or else about the last."""
        if self._authorizer is None:
            return "no authorizer"
        client = request.connection
        rulings = [
            self._authorizer.explain(client.principal, client.peer_host, *need) for need in needs
        ]
        return _rule_text(next((each for each in rulings if each.allowed), rulings[-1]))


def _rule_text(ruling: Ruling) -> str:
    return bounded(_RULES.get(ruling.reason) or str(ruling.acl))


def _outcome(code: int) -> str:
    # A request that timed out may still have an effect.
    return {0: "done", ErrorCode.REQUEST_TIMED_OUT: "unknown"}.get(code, "failed")


def _client(connection: Connection, listener: str) -> Mapping[str, Any]:
    return {
        "principal": bounded(str(connection.principal)),
        "host": connection.peer_host,
        "listener": listener,
    }


def _origin(request: RequestContext) -> Mapping[str, Any]:
    client_id = request.client_id
    return {
        **_client(request.connection, request.listener),
        "client_id": None if client_id is None else bounded(client_id),
        "api": key_name(request.header.api_key),
    }


def _resource(need: Need) -> Mapping[str, Any]:
    return {
        "operation": need.operation.name,
        "resource": bounded(f"{title(need.kind.name)}:{need.name}"),
    }
