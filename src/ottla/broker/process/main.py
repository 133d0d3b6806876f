"""Runs one broker as a process: `python -m ottla.broker.process.main server.properties`."""

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ottla.base.errors import OttlaError
from ottla.base.log_lines import log_as_json, log_to_stderr
from ottla.base.settings import BrokerSettings, read_broker_settings
from ottla.base.settings.listeners import listen_addresses
from ottla.base.system import (
    give_memory_back,
    keep_large_buffers_apart,
    raise_descriptors_max,
)
from ottla.broker.process.broker import Broker
from ottla.wire.codec import prepare
from ottla.wire.messages.between_brokers import LeaderAndIsrRequest, LeaderAndIsrResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

# Requests create few reference cycles. So full collections are rare, which keeps their pauses out
# of the latencies. Young collections are small and thus short, even if a request has many objects.
_GC_THRESHOLDS = (10_000, 5, 50)
# The messages that brokers exchange as soon as a topic is created.
_FIRST_MESSAGES = (LeaderAndIsrRequest, LeaderAndIsrResponse, FetchRequest, FetchResponse)


def warm_up(broker: Broker) -> None:
    """Compile the codecs of the first messages, and tune garbage collection."""
    if len(broker.image.brokers) > 1:
        for message in _FIRST_MESSAGES:
            prepare(message)
    # Objects created during the start live as long as the process: exempt them from collections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    # Reading files and compiling them left free memory behind.
    give_memory_back()


_log = logging.getLogger(__name__)

_WARM_UP_S = 0.5


def run(
    settings: BrokerSettings,
    *,
    on_ready: Callable[[Broker], None] | None = None,
    ends_with_others: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT, then stop. `on_ready` is called once clients can connect.

    `ends_with_others` means that SIGINT reaches all brokers of the cluster at once, so that no
    other broker can take over leadership. Raises OttlaError, with cause and remedy, if the broker
    cannot start.
    """
    if settings.text("logger.format") == "json":
        log_as_json(settings.broker_id)
    # Loaded modules and classes live as long as the process, so collections can skip them.
    gc.freeze()
    raise_descriptors_max()
    if any(address.is_tls for address in listen_addresses(settings)):
        keep_large_buffers_apart()
    _run_loop(_serve(settings, on_ready, ends_with_others=ends_with_others))


async def _serve(
    settings: BrokerSettings,
    on_ready: Callable[[Broker], None] | None,
    *,
    ends_with_others: bool,
) -> None:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    received: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        received.append(number)
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        _call_on_signal(loop, number, on_signal)
    broker = Broker(settings)
    await broker.start()
    broker.runtime.watch.start(alarm=True)
    if on_ready is not None:
        on_ready(broker)
    loop.call_later(_WARM_UP_S, warm_up, broker)
    await stopping.wait()
    _log.info("stopping")
    all_stop = ends_with_others and received[0] == signal.SIGINT
    await broker.stop(hands_over=not all_stop)


def _call_on_signal(
    loop: asyncio.AbstractEventLoop,
    number: signal.Signals,
    callback: Callable[[signal.Signals], None],
) -> None:
    try:
        loop.add_signal_handler(number, callback, number)
    except NotImplementedError:
        # The event loop on Windows lacks this method.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(callback, number))


def _run_loop(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop if it is installed, else on asyncio's own loop."""
    try:
        import uvloop  # noqa: PLC0415  # Only here is it known to be missing or not.
    except ImportError:
        asyncio.run(main)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)


def main(arguments: list[str]) -> int:
    """Run the process; return the exit code."""
    log_to_stderr(logging.INFO, "[%(asctime)s] %(levelname)s %(message)s (%(name)s)")
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m ottla.broker.process.main server.properties\n")
        return 2
    path = Path(arguments[0])
    if not path.exists():
        sys.stderr.write(f"cannot read {path}: there is no such file\n")
        return 2
    try:
        settings = read_broker_settings(path)
        if settings.text("cores"):
            sys.stderr.write(f"this runs one broker: start `cores` by `ottla broker run {path}`\n")
            return 2
        run(settings, on_ready=_announce)
    except OttlaError as error:
        sys.stderr.write(f"the broker cannot start: {error.message}\n")
        return 1
    return 0


def _announce(broker: Broker) -> None:
    _log.info("broker %d serves on port %d", broker.broker_id, broker.port)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
