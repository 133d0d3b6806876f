"""Ottla: a replicated, partitioned commit log that any Kafka client can use unchanged."""

__version__ = "0.1.0"

from ottla import _compiled

_compiled.install()
