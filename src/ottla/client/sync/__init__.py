"""Producer, consumer and administration as plain calls, for programs without an event loop.

One background thread runs a loop of its own (uvloop where it is installed); nothing global is
changed. Objects may be used from any thread, a consumer from one at a time.
"""

from ottla.client.sync.admin import Admin
from ottla.client.sync.consumer import Consumer
from ottla.client.sync.producer import Producer
from ottla.client.sync.transactional_producer import TransactionalProducer

__all__ = ["Admin", "Consumer", "Producer", "TransactionalProducer"]
