"""Done a moment after the start, so that the first requests need not wait for it."""

import gc

from ottla.broker.process.broker import Broker
from ottla.wire.codec import prepare
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse

# Requests make almost no reference cycles: rare collections of all objects keep pauses out of the
# latencies, and looking through few young ones at a time keeps the remaining pauses short, also
# while a request has many objects in memory.
_GC_THRESHOLDS = (10_000, 5, 50)
# What the brokers of a cluster send each other as soon as a topic is created.
_FIRST_MESSAGES = (LeaderAndIsrRequest, LeaderAndIsrResponse, FetchRequest, FetchResponse)


def warm_up(broker: Broker) -> None:
    """Compile the codecs of the first messages, and tune garbage collection."""
    if len(broker.image.brokers) > 1:
        for message in _FIRST_MESSAGES:
            prepare(message)
    # The objects made at the start live as long as the process: exempt from collections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
