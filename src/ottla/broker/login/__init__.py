"""SASL logins: the users of the cluster, and the login exchange of each connection.

The decisions are made in `ottla.security.sasl`. Begin with `login`.
"""
