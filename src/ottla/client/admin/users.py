"""Users with SCRAM credentials (KIP-554)."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, name_list
from ottla.client.common.call_check import checks_calls
from ottla.client.common.errors import check, refused
from ottla.security.sasl.scram_keys import (
    ITERATIONS_DEFAULT,
    SALT_BYTES,
    ScramMechanism,
    mechanism_numbered,
    salted_password,
)
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

# The pause before asking a broker again whether it has applied a removal.
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class UserDescription:
    """A user, and the iterations of each of its credentials."""

    name: str
    credentials: Mapping[ScramMechanism, int]


@checks_calls
class Users:
    """`admin.users`: the users that can log in."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def find(self, names: Names | None = None) -> list[UserDescription]:
        """Return the users with these names that exist; without names, all. Raises OttlaError."""
        wanted = None if names is None else [UserName(name=name) for name in name_list(names)]
        request = DescribeUserScramCredentialsRequest(users=wanted)

        async def ask() -> list[UserDescription]:
            return await self._described(await self._calls.cluster.controller(), request)

        return await self._calls.retried(ask)

    async def _described(
        self, broker_id: int, request: DescribeUserScramCredentialsRequest
    ) -> list[UserDescription]:
        answer = await self._calls.cluster.ask(
            broker_id, request, DescribeUserScramCredentialsResponse
        )
        check(answer.error_code, "describe users", answer.error_message)
        found: list[UserDescription] = []
        for result in answer.results:
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check(result.error_code, f"describe user {result.user}", result.error_message)
            credentials: dict[ScramMechanism, int] = {}
            for info in result.credential_infos:
                mechanism = mechanism_numbered(info.mechanism)
                if mechanism is not None:
                    credentials[mechanism] = info.iterations
            found.append(UserDescription(result.user, credentials))
        return found

    async def set_password(
        self,
        name: str,
        password: str,
        mechanisms: Iterable[ScramMechanism] = tuple(ScramMechanism),
        iterations: int = ITERATIONS_DEFAULT,
    ) -> None:
        """Set a user's password, creating the user if missing. Only a hash is sent.

        Raises OttlaError.
        """
        for mechanism in mechanisms:
            salt = random_bytes(SALT_BYTES)
            salted = await asyncio.to_thread(salted_password, mechanism, password, salt, iterations)
            upsertion = ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism.number,
                iterations=iterations,
                salt=salt,
                salted_password=salted,
            )
            # One by one, because Kafka refuses a request with two credentials of a user.
            await self._alter(
                AlterUserScramCredentialsRequest(upsertions=[upsertion]),
                f"set the password of {name}",
            )

    async def remove(self, name: str) -> None:
        """Remove all credentials of a user, so that it cannot log in any more.

        Raises OttlaError.
        """
        found = await self.find([name])
        if not found:
            raise refused(ErrorCode.RESOURCE_NOT_FOUND, f"remove user {name}", "there is none")
        for mechanism in found[0].credentials:
            deletion = ScramCredentialDeletion(name=name, mechanism=mechanism.number)
            await self._alter(
                AlterUserScramCredentialsRequest(deletions=[deletion]), f"remove user {name}"
            )

    async def end_sessions(self, name: str) -> None:
        """Remove a user.

        Return once each live broker has applied that, which ends the user's sessions. Only for an
        Ottla cluster: Kafka keeps open sessions. Raises OttlaError.
        """
        await self.remove(name)
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name)])
        for broker_id in await self._calls.retried(self._calls.brokers):
            while True:
                if not await self._described(broker_id, request):
                    break
                await asyncio.sleep(_PAUSE_S)

    async def _alter(self, request: AlterUserScramCredentialsRequest, what: str) -> None:
        async def ask() -> None:
            broker_id = await self._calls.cluster.controller()
            answer = await self._calls.cluster.ask(
                broker_id, request, AlterUserScramCredentialsResponse
            )
            for result in answer.results:
                check(result.error_code, what, result.error_message)

        await self._calls.retried(ask)
