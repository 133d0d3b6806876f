"""Checks a table against its manifests and its topic: verification and certificates.

Begin with `verify`.
"""
