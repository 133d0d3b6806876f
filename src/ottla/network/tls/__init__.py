"""TLS of listeners and clients: turns Kafka's `ssl.*` settings into contexts of module `ssl`.

Begin with `options` (the settings), then `material` (keys and certificates in memory), `context`
(the `ssl` contexts) and `source` (renews the context when files change). The handshakes of a
listener are in `network.tls_acceptor`.
"""
