"""TLS of listeners and of connections: Kafka's `ssl.*` settings to contexts of the `ssl` module.

Begin in `options` (what the settings say), then `material` (keys and certificates, in memory),
`context` (what the loop takes) and `source` (the newest context, as files change). A listener's
handshakes are in `network.tls_acceptor`.
"""
