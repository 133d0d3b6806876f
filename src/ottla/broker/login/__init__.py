"""Logins over SASL: the users of the cluster, and the exchanges of connections with their clients.

The decisions are those of `ottla.security.sasl`. Begin with `login`.
"""
