"""The parts that serve Produce: the fast path for producers that repeat requests, and answers.

Begin with `shortcut` for the fast path, and with `broker.handlers.produce` for the slow path.
"""
