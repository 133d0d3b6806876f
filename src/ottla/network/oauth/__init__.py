"""OAuth over HTTPS, for OAUTHBEARER: the keys of an issuer, and the tokens of this process.

Everything here blocks: an event loop calls it in a thread. Begin with `tokens` and `fetching`.
"""
