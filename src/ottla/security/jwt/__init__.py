"""Signed JSON Web Tokens: the checks before a token's subject is trusted.

A core without I/O: keys and the time are arguments. Signatures are verified by `joserfc`, which
only `verify` imports. Begin with `verify.verify_token`.
"""
