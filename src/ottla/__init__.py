"""Ottla: a replicated, partitioned commit log that any Kafka client can use unchanged.

What programs import:

- `ottla.client`: producers, consumers and administration for asyncio; `ottla.client.sync` as plain
  calls. They work with any Kafka broker.
- `ottla.lake`: loads from topics into tables by PySpark, with a proof of each.
- `ottla.testing`: a broker inside a test, a cluster in virtual time; the pytest fixture
  `ottla_broker`.

Everything else is the broker's own and may change at any time. `python -m ottla.cli` is the command
`ottla`.
"""

__version__ = "0.1.0"

from ottla import _compiled

_compiled.install()
