"""The part that authenticates clients: users, delegation tokens, and all listeners' logins."""

from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.settings import BrokerSettings
from ottla.broker.login.logins import Logins
from ottla.broker.login.tokens import new_tokens
from ottla.broker.login.users import ScramUsers
from ottla.broker.requests.auditing import Auditing
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.runtime import Runtime
from ottla.coordination.interface.store import Store

_CHECK_INTERVAL = "delegation.token.expiry.check.interval.ms"


@dataclass(frozen=True, slots=True)
class LoginStatus:
    """Counts the users with SCRAM credentials and the delegation tokens of the cluster."""

    users: int
    tokens: int
    # Users and tokens with which clients are logged in to this broker now.
    credentials_in_use: int


class LoginPart(BrokerPart):
    """The authentication of clients. `tokens` is None if no secret key is set."""

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        store: Store,
        secret: bytes,
        audit: Auditing | None,
        is_controller: Callable[[], bool],
    ) -> None:
        """Create the part. On the controller, it also removes expired tokens from the store."""
        self._runtime = runtime
        self._interval_ms = settings.integer(_CHECK_INTERVAL)
        self._is_controller = is_controller
        self.users = ScramUsers(store, runtime.clock, secret)
        self.tokens = new_tokens(settings, store, runtime)
        self.logins = Logins(settings, self.users, self.tokens, runtime, audit)

    def begin(self) -> None:
        if self.tokens is not None:
            work = self.tokens.keep_removing(self._interval_ms, self._is_controller)
            self._runtime.spawn(work)

    def status(self) -> LoginStatus:
        return LoginStatus(
            users=len(self.users.all()),
            tokens=0 if self.tokens is None else sum(1 for _ in self.tokens.all()),
            credentials_in_use=len(self.logins.sessions),
        )
