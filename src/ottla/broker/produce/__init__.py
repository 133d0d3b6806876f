"""The parts of serving Produce: the fast path of repeating producers, and answers.

Begin with `shortcut` for the fast path, and with `broker.handlers.produce` for the slow path.
"""
