"""The store in which brokers agree: sessions, versions, sequences, watches.

Begin in `interface.store`. `sqlite`, `zookeeper` and `memory` are three stores; `connect` opens the
one that a broker's settings name.
"""
