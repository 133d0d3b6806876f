"""Producer, consumer and administration as plain calls, for programs without an event loop.

One background thread runs its own loop (uvloop if installed); no global state is changed. Objects
may be used from any thread, a consumer from one at a time.
"""

from ottla.client.admin import AdminOptions
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.producer.options import ProducerOptions
from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Producer

__all__ = ["Admin", "AdminOptions", "Consumer", "ConsumerOptions", "Producer", "ProducerOptions"]


def __dir__() -> list[str]:
    return __all__
