"""OAuth over HTTPS, for OAUTHBEARER: an issuer's keys, and this process's tokens.

Everything here blocks: an event loop calls it in a thread. Begin with `tokens` and `fetching`.
"""
