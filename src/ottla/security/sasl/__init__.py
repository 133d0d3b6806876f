"""SASL mechanisms, both sides of each: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER.

A core without I/O: messages go in and out as bytes, nonces and credentials are arguments. A wrong
step raises OttlaError(SASL_AUTHENTICATION_FAILED), whose message never contains a secret.
"""
