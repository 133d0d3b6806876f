"""Commands on a group that somebody of this broker waits for, as coroutines."""

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.groups.groups import Groups
from ottla.broker.groups.shard import Command
from ottla.broker.requests.request import RequestContext

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class _Waiting:
    """Implements `broker.groups.answer.Answer` for a coroutine."""

    __slots__ = ("future", "request")

    def __init__(self, request: RequestContext) -> None:
        self.request = request
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def give(self, message: Any) -> None:
        if not self.future.done():
            self.future.set_result(message)

    def fail(self, code: ErrorCode) -> None:
        if not self.future.done():
            self.future.set_exception(
                OttlaError(code, "the group's coordinator gave up; ask again")
            )


async def command(broker: "Broker", request: RequestContext, group_id: str, run: Command) -> Any:
    """Carry out a command on a group for a request; what it answers. Raises OttlaError."""
    return await run_command(broker.groups, request, group_id, run)


async def run_command(groups: Groups, request: RequestContext, group_id: str, run: Command) -> Any:
    """Carry out a command on a group for a request; what it answers. Raises OttlaError."""
    waiting = _Waiting(request)
    groups.run(group_id, waiting, run)
    return await waiting.future
