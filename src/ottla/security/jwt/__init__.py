"""Signed JSON Web Tokens: what one must be before its subject is believed.

A core without I/O: keys and the time are arguments. Signatures are verified by `joserfc`, which
`keys` alone imports. Begin with `verify.verify_token`.
"""
