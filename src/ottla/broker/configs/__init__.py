"""Settings that change while brokers run: stored, sent to all brokers, described.

Begin with `configs`.
"""
