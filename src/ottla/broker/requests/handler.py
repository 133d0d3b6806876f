"""What serves one API: an object of the parts it uses, one file for each in `broker.handlers`."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from ottla.base.errors import ErrorCode
from ottla.broker.requests.auditing import AdminChange
from ottla.broker.requests.needs import Guard, brokers_only
from ottla.broker.requests.portions import Once, Portions, elements_max
from ottla.broker.requests.request import RequestContext
from ottla.wire.api import api_name
from ottla.wire.notation import Message

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class NoAnswer:
    """The type of NO_ANSWER."""


# Returned by a handler whose request gets no answer at all (Produce with acks=0).
NO_ANSWER = NoAnswer()


class Versions(NamedTuple):
    """The versions of an API that are served, both ends included."""

    min: int
    max: int


@dataclass(slots=True, eq=False, repr=False)
class Api(Generic[Q, R]):
    """The declaration of one API, from which all else about it is derived.

    `needs` checks clients' requests where there is an authorizer. `changes` makes the lines of the
    audit log from request and response, one at least for each change; the request has what was
    allowed of it.
    """

    request: type[Q]
    response: type[R]
    versions: Versions
    _: KW_ONLY
    needs: Guard[Q, R]
    changes: Callable[[Q, R], Iterable[AdminChange]] | None = None
    # Clients make these changes so often that repetitions are counted, and that none waits.
    changes_often: bool = False
    # How a long request is served as several short ones.
    portions: tuple[Portions[Q, R], ...] = ()
    once: tuple[Once[Q], ...] = ()
    # Elements of all lists of a client's request, where fewer than usual hold the loop for long.
    fewer_elements_max: int | None = None
    # The response that reports a failed request; None: it has the error above all.
    on_error: Callable[[Q, ErrorCode, str | None], R] | None = None
    # The call by which a connection becomes that of a proven broker.
    makes_proven: bool = False

    @property
    def key(self) -> int:
        """The key of its requests."""
        return self.request.__api_key__

    @property
    def elements_max(self) -> int:
        """How many elements the lists of a client's request may have, all together."""
        return self.fewer_elements_max or elements_max(self.portions)

    @property
    def between_brokers(self) -> bool:
        """Whether it is no API for clients, and not advertised to them."""
        return self.makes_proven or self.needs is brokers_only

    @property
    def name(self) -> str:
        """Kafka's name of it."""
        return api_name(self.key)

    def failed(self, body: Q, code: ErrorCode, message: str | None) -> R:
        """The response that reports a failed request."""
        if self.on_error is not None:
            return self.on_error(body, code, message)
        if any(field.name == "error_message" for field in self.response.__fields__):
            return self.response(error_code=code, error_message=message)
        return self.response(error_code=code)


class Handler(ABC):
    """One API.

    Subclasses are dataclasses whose fields are the parts of the broker that they use. They are not
    values: without comparison and freezing, a class takes a sixth of the time at import.
    """

    __slots__ = ()

    # The table of handlers mixes all messages, hence Any.
    api: ClassVar[Api[Any, Any]]

    @abstractmethod
    def handle(self, request: RequestContext, body: Any) -> Any:
        """Return the response, NO_ANSWER, or None where `request.reply` gives it later.

        A coroutine function where a rare call waits for the store. Raises OttlaError.
        """

    @classmethod
    def on_error(cls, body: Any, code: ErrorCode, message: str | None, _version: int) -> Any:
        """The response that reports a failed request: that of the declaration.

        Handlers whose responses depend on the version have their own.
        """
        return cls.api.failed(body, code, message)


def is_coroutine(handler: Handler) -> bool:
    """Whether `handle` is to be awaited."""
    return inspect.iscoroutinefunction(handler.handle)
