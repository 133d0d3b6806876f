"""TLS of listeners and of connections: Kafka's `ssl.*` settings to contexts of the `ssl` module.

Begin in `options` (what the settings say), then `material` (keys and certificates, in memory),
`context` (what the loop takes), `source` (the newest context, as files change) and `door` (a
listener's handshakes).
"""
