"""The controller's shell: its election, its access to the store, and its requests to brokers.

The cores in `ottla.controller` decide what to do.
"""

from ottla.broker.controller.controller import Controller

__all__ = ["Controller"]
