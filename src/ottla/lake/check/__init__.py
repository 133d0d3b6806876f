"""Derives the proof of a table again, from its files and its topic: verify and certificates.

Begin with `verify`.
"""
