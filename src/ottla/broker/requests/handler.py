"""The base of all handlers: an object that serves one API.

Each has its own file in `broker.handlers`.
"""

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


# Returned by a handler if the request gets no answer at all (Produce with acks=0).
NO_ANSWER = NoAnswer()


class Versions(NamedTuple):
    """The served versions of an API, both ends included."""

    min: int
    max: int


@dataclass(slots=True, eq=False, repr=False)
class Api(Generic[Q, R]):
    """The declaration of an API, from which everything else about it is derived.

    `needs` checks requests of clients if there is an authorizer. `changes` returns the audit events
    for a request and its response, at least one per change. The request then contains only items
    that were allowed.
    """

    request: type[Q]
    response: type[R]
    versions: Versions
    _: KW_ONLY
    needs: Guard[Q, R]
    changes: Callable[[Q, R], Iterable[AdminChange]] | None = None
    # Whether clients make these changes so often that repetitions are only counted, and no
    # request waits for the audit log.
    changes_often: bool = False
    # How to divide a long request into several short ones.
    portions: tuple[Portions[Q, R], ...] = ()
    once: tuple[Once[Q], ...] = ()
    # The most elements in all lists of a client's request, if the usual number would block the
    # loop for too long.
    fewer_elements_max: int | None = None
    # Returns a response with the error of the whole request. If None, the error is set in the
    # top-level error field.
    on_error: Callable[[Q, ErrorCode, str | None], R] | None = None
    # Whether a successful request proves that the other side is a broker of the cluster.
    makes_proven: bool = False

    @property
    def key(self) -> int:
        """Return the API key of its requests."""
        return self.request.__api_key__

    @property
    def elements_max(self) -> int:
        """Return how many elements the lists of a client's request may have in total."""
        return self.fewer_elements_max or elements_max(self.portions)

    @property
    def between_brokers(self) -> bool:
        """Return whether only brokers use the API; it is not advertised to clients."""
        return self.makes_proven or self.needs is brokers_only

    @property
    def name(self) -> str:
        """Return Kafka's name of the API."""
        return api_name(self.key)

    def failed(self, body: Q, code: ErrorCode, message: str | None) -> R:
        """Return the response that reports a failed request."""
        if self.on_error is not None:
            return self.on_error(body, code, message)
        if any(field.name == "error_message" for field in self.response.__fields__):
            return self.response(error_code=code, error_message=message)
        return self.response(error_code=code)


class Handler(ABC):
    """Serves one API.

    Subclasses are dataclasses whose fields are the broker parts that they use. They are neither
    comparable nor frozen, which makes creating the class at import six times as fast.
    """

    __slots__ = ()

    # Any, because the table of handlers contains handlers of all message types.
    api: ClassVar[Api[Any, Any]]

    @abstractmethod
    def handle(self, request: RequestContext, body: Any) -> Any:
        """Return the response, or NO_ANSWER; None if `request.reply` sends the response later.

        A coroutine if the handler must wait for the store or for other work; it returns the
        response. Raises OttlaError.
        """

    @classmethod
    def on_error(cls, body: Any, code: ErrorCode, message: str | None, _version: int) -> Any:
        """Return a response with the error of the whole request, as declared in `api`.

        A handler overrides it if the form of its response depends on the version.
        """
        return cls.api.failed(body, code, message)
