"""OAuth over HTTPS, for OAUTHBEARER: an issuer's public keys, and this process's own tokens.

All calls in this package block, so an event loop makes them in a thread. Begin with `tokens` and
`issuer_reader`.
"""
