"""The controller's shell: election, the store, and requests to brokers.

What to do is decided in `ottla.controller`.
"""

from ottla.broker.controller.controller import Controller

__all__ = ["Controller"]
