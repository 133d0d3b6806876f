"""Work done shortly after the start, so that the first requests need not wait for it."""

import gc

from ottla.broker.process.broker import Broker
from ottla.wire.codec import prepare
from ottla.wire.messages.between_brokers import LeaderAndIsrRequest, LeaderAndIsrResponse
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

# Requests create few reference cycles: rare full collections keep pauses out of the latencies, and
# small young collections keep the remaining pauses short, even during requests with many objects.
_GC_THRESHOLDS = (10_000, 5, 50)
# Sent between brokers as soon as a topic is created.
_FIRST_MESSAGES = (LeaderAndIsrRequest, LeaderAndIsrResponse, FetchRequest, FetchResponse)


def warm_up(broker: Broker) -> None:
    """Compile the codecs of the first messages, and tune garbage collection."""
    if len(broker.image.brokers) > 1:
        for message in _FIRST_MESSAGES:
            prepare(message)
    # The objects created at the start live as long as the process: exempt them from collections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
