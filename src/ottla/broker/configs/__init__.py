"""Settings that change while brokers run: stored, told to all, described with their sources.

Begin with `configs`.
"""
