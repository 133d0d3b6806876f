"""Copies the audit log to syslog or to a file descriptor, each time with the head.

The head is the hash of the last line. A copy of it on another machine proves that the files are
unchanged up to that line. A slow or missing target never blocks the broker: lines that do not fit
into memory are dropped, and their number is sent later.
"""

import logging
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.log_lines import Seldom
from ottla.security.audit.chain import Head, canonical

_log = logging.getLogger(__name__)

_QUEUED_BYTES_MAX = 16 << 20
_FAILURES_APART_MS = 60_000
# How long `close` waits until the remaining lines are sent.
_CLOSE_S = 5.0
# The priority of facility authpriv and severity info, and the name of the program.
_SYSLOG = b"<86>ottla-audit: "
_SYSLOG_PATH = "/dev/log"
_LINE_BYTES_MAX = 60_000

Send = Callable[[bytes], None]


class AuditSink:
    """Sends lines to the target from a thread of its own."""

    def __init__(self, target: str, broker: int) -> None:
        """Create the sink.

        `target` is the value of `audit.log.sink`. Raises OttlaError if it is invalid.
        """
        self._target = target
        self._broker = broker
        self._send = _sender(target)
        self._queued: deque[tuple[bytes, Head]] = deque()
        self._queued_bytes = 0
        self._lost = 0
        self._changed = threading.Condition()
        self._is_closing = False
        self._failures = Seldom(_FAILURES_APART_MS)
        self._thread = threading.Thread(target=self._work, name="ottla-audit-sink", daemon=True)
        self._thread.start()

    def put(self, lines: bytes, head: Head) -> None:
        """Queue lines to be sent, with the number and hash of the last one. Does not wait."""
        with self._changed:
            if self._queued_bytes + len(lines) > _QUEUED_BYTES_MAX:
                self._lost += lines.count(b"\n")
                return
            self._queued.append((lines, head))
            self._queued_bytes += len(lines)
            self._changed.notify()

    def close(self) -> None:
        """Wait until all lines are sent, or the time limit is over."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queued or self._is_closing)
                if not self._queued:
                    return
                lines, head = self._queued.popleft()
                self._queued_bytes -= len(lines)
                lost, self._lost = self._lost, 0
            text = b"" if not lost else self._own({"event": "lost", "lines": lost})
            last = self._own({"event": "head", "line": head.number, "hash": head.hash})
            try:
                self._send(text + lines + last)
            except OSError as error:
                with self._changed:
                    self._lost += lost + lines.count(b"\n")
                self._log_failure(error)

    def _own(self, fields: dict[str, object]) -> bytes:
        return canonical({**fields, "broker": self._broker}) + b"\n"

    def _log_failure(self, error: OSError) -> None:
        if self._failures.admit("send", time.monotonic_ns() // 1_000_000) is not None:
            _log.error(
                "audit.log.sink: %s takes no lines (%s); the files of the audit log have them, and"
                " the number of those that it missed is sent when it works again",
                self._target,
                error,
            )


def _sender(target: str) -> Send:
    kind, _, rest = target.partition(":")
    if kind == "fd" and rest.isdecimal():
        return _to_descriptor(int(rest))
    host, _, port = rest.rpartition(":")
    if target == "syslog" or (kind == "syslog" and host and port.isdecimal()):
        return _to_syslog((host.strip("[]"), int(port)) if rest else None)
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"audit.log.sink is {target[:100]!r}: set it to fd:NUMBER of an open file descriptor,"
        " syslog for this machine's, or syslog:HOST:PORT for one that takes UDP",
    )


def _to_descriptor(descriptor: int) -> Send:
    try:
        os.fstat(descriptor)
    except OSError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"audit.log.sink is fd:{descriptor}, and no such file descriptor is open: let what"
            " starts the broker open it",
        ) from error

    def send(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]

    return send


def _to_syslog(address: tuple[str, int] | None) -> Send:
    def send(data: bytes) -> None:
        family = socket.AF_UNIX
        if address is not None:
            family = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM)[0][0]
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.connect(address or _SYSLOG_PATH)
            for line in data.splitlines():
                sender.send(_SYSLOG + line[:_LINE_BYTES_MAX])

    return send
