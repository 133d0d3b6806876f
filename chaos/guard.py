"""Changes ACLs and passwords, and asks every broker by which it goes: `python -m chaos.guard …`.

One thread allows and denies a topic to the user `visitor`, and gives another user new passwords;
the other goes on asking each broker for that topic as `visitor`. What was acknowledged and what was
answered is written down, and judged by `chaos.guard_verdict`.
"""

import contextlib
import json
import os
import secrets
import sys
import threading
import time
from pathlib import Path

from chaos.secured import MECHANISM, VISITOR
from chaos.secured_metadata import dial
from chaos.task import Ending, Task, parsed_task
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.secret_options import CONFIG_VARIABLE
from ottla.client import sync
from ottla.client.connection.blocking_connection import BlockingConnection
from ottla.client.connection.security import (
    ClientSecurity,
    read_config,
    security_of,
)
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

GUARDED = "guarded"
_ALLOW = Acl(
    ResourcePattern(AclResource.TOPIC, GUARDED),
    f"User:{VISITOR}",
    "*",
    AclOperation.DESCRIBE,
    Permission.ALLOW,
)
# Whose password changes.
_GUEST = "guest"
_ITERATIONS = 4096
_EVERY_S = 0.7
_ASK_EVERY_S = 0.05
_PASSWORD_EVERY = 5
_AGAIN_S = 0.1
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Notes:
    """Lines of JSON, from several threads."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="ascii", buffering=1)
        self._lock = threading.Lock()

    def note(self, what: str, begin_s: float, **fields: object) -> None:
        """Something that began then and has ended now."""
        line = {"what": what, "begin_s": begin_s, "end_s": time.monotonic(), **fields}
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


class Administrator:
    """Changes rules and passwords until it is over."""

    def __init__(self, task: Task, notes: Notes, guest: dict[str, str]) -> None:
        self._task = task
        self._notes = notes
        self._guest = guest
        self._password = ""
        self.is_over = False

    def run(self) -> None:
        """Change by change; each until it is acknowledged."""
        with sync.Admin(self._task.bootstrap) as admin:
            number = 0
            while not self.is_over:
                self._change(admin, denies=number % 2 == 1)
                number += 1
                if number % _PASSWORD_EVERY == 0:
                    self._change_password(admin)
                time.sleep(_EVERY_S)

    def _change(self, admin: sync.Admin, *, denies: bool) -> None:
        begin_s = time.monotonic()
        # The judge needs to know that a change may hold from now on, though not acknowledged.
        self._notes.note("attempt", begin_s, denies=denies)
        while not self.is_over:
            try:
                if denies:
                    admin.acls.delete(AclFilter(name=GUARDED))
                else:
                    admin.acls.create([_ALLOW])
            except OttlaError:
                time.sleep(_AGAIN_S)
            else:
                self._notes.note("change", begin_s, denies=denies)
                return

    def _change_password(self, admin: sync.Admin) -> None:
        before, self._password = self._password, secrets.token_urlsafe(9)
        begin_s = time.monotonic()
        while not self.is_over:
            try:
                admin.users.set_password(_GUEST, self._password, [MECHANISM], _ITERATIONS)
            except OttlaError:
                time.sleep(_AGAIN_S)
                continue
            acknowledged_s = time.monotonic()
            self._notes.note("password", begin_s)
            time.sleep(_EVERY_S)
            for password in filter(None, (before, self._password)):
                self._try_logins(password, acknowledged_s)
            return

    def _try_logins(self, password: str, acknowledged_s: float) -> None:
        config = {**self._guest, "sasl.username": _GUEST, "sasl.password": password}
        security = security_of(config)
        is_old = password != self._password
        for number, address in enumerate(self._task.bootstrap.split(","), 1):
            begin_s = time.monotonic()
            answer = "unknown"
            try:
                dial(address, security).close()
                answer = "accepted"
            except OttlaError as error:
                if error.code is ErrorCode.SASL_AUTHENTICATION_FAILED:
                    answer = "refused"
            self._notes.note(
                "login",
                begin_s,
                broker=number,
                is_old=is_old,
                answer=answer,
                acknowledged_s=acknowledged_s,
            )


class Asker:
    """Asks each broker over a connection of its own, which lives as long as it can."""

    def __init__(self, task: Task, notes: Notes, security: ClientSecurity) -> None:
        self._addresses = task.bootstrap.split(",")
        self._notes = notes
        self._security = security
        self._connections: dict[str, BlockingConnection] = {}

    def run(self, ending: Ending) -> None:
        """Ask in turn."""
        while not ending.asked:
            for number, address in enumerate(self._addresses, 1):
                with contextlib.suppress(OttlaError):
                    self._ask(number, address)
            time.sleep(_ASK_EVERY_S)

    def _ask(self, number: int, address: str) -> None:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = dial(address, self._security)
        names = [MetadataRequestTopic(name=GUARDED)]
        request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
        begin_s = time.monotonic()
        try:
            answer = connection.ask(request, MetadataResponse)
        except OttlaError:
            del self._connections[address]
            connection.close()
            raise
        (topic,) = answer.topics
        if topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, _DENIED):
            is_denied = topic.error_code == _DENIED
            self._notes.note("answer", begin_s, broker=number, is_denied=is_denied)


def main() -> int:
    """Guard as the command line says; OTTLA_CONFIG names the administrator's settings."""
    task, ending = parsed_task(), Ending()
    notes = Notes(task.folder / f"{task.name}.notes")
    visitor = read_config(str(Path(os.environ[CONFIG_VARIABLE]).with_name(f"{VISITOR}.properties")))
    guest = {name: text for name, text in visitor.items() if name != "sasl.jaas.config"}
    administrator = Administrator(task, notes, guest)
    thread = threading.Thread(target=administrator.run, daemon=True)
    thread.start()
    Asker(task, notes, security_of(visitor)).run(ending)
    administrator.is_over = True
    thread.join(30)
    return 0


if __name__ == "__main__":
    sys.exit(main())
