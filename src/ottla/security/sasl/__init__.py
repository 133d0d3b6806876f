"""SASL mechanisms, both sides of each: PLAIN, SCRAM-SHA-256 and -512.

A core without I/O: messages go in and out as bytes, nonces and credentials are arguments. A wrong
step raises OttlaError(SASL_AUTHENTICATION_FAILED); its message never has a secret in it.
"""
