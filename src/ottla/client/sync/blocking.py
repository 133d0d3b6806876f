"""Turns methods of asynchronous clients into blocking ones with the same signature."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Plain = TypeVar("Plain")

# A class that uses these has `_thread`, whose loop runs the asynchronous client, and `_twin`, that
# client. The signature is written once, at the asynchronous method; type checkers, `help` and `dir`
# see it here, too.


def waits(
    method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Call `method` of the twin, and wait for its result."""
    name = method.__name__  # What the twin's own class has under it, which may override it.

    @wraps(method)
    def call(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        result: Result = self._thread.call(getattr(self._twin, name)(*arguments, **named))
        return result

    return call


def asks(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Result]:
    """Call `method` of the twin, which does not wait but must run on the twin's loop."""
    name = method.__name__  # What the twin's own class has under it, which may override it.

    @wraps(method)
    def call(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        result: Result = self._thread.call_plain(
            lambda: getattr(self._twin, name)(*arguments, **named)
        )
        return result

    return call


def called_as(
    method: Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[
    [Callable[Concatenate[Plain, Parameters], Result]],
    Callable[Concatenate[Plain, Parameters], Result],
]:
    """Give a plain method the signature of `method`; type checkers compare them."""

    def same(
        plain: Callable[Concatenate[Plain, Parameters], Result],
    ) -> Callable[Concatenate[Plain, Parameters], Result]:
        plain.__doc__ = plain.__doc__ or method.__doc__
        return plain

    return same
