"""Calls users' callbacks: errors are reported with the callback's name and its own traceback."""

import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.client.common.errors import CallbackFailed

Given = TypeVar("Given")

_logger = logging.getLogger(__name__)


async def call_listener(
    name: str, listener: Callable[[Given], Awaitable[None] | None] | None, given: Given
) -> None:
    """Call a listener and wait for it.

    Raises CallbackFailed, caused by the listener's error; an error of Ottla, raised by a call
    inside the listener, is passed on unchanged.
    """
    if listener is None:
        return
    try:
        outcome = listener(given)
        if isawaitable(outcome):
            await outcome
    except OttlaError:
        raise
    except Exception as error:  # noqa: BLE001  # Any error becomes the cause of CallbackFailed.
        raise CallbackFailed(f"{name} raised {error!r}") from _from_its_own_code(error)


def call_callback(name: str, callback: Callable[[Given], object], given: Given) -> None:
    """Call a callback whose errors must not stop the caller: they are logged."""
    try:
        callback(given)
    except Exception as error:  # The supervisor of callbacks: the others are still called.
        _logger.error("%s raised %r", name, error, exc_info=_from_its_own_code(error))


def _from_its_own_code(error: Exception) -> Exception:
    """Return the error without our frame in its traceback, if it has other frames."""
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None:
        return error.with_traceback(trace.tb_next)
    return error
