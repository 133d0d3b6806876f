"""What is particular to Produce: the fast path of producers that repeat themselves, and answers.

Begin with `shortcut` for the fast path, and with `broker.handlers.produce` for the slow path.
"""
