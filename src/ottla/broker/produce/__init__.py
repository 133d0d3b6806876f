"""What is particular to Produce: the fast way of producers that repeat themselves, and answers.

Begin with `shortcut` for the fast way, and with `broker.handlers.produce` for the slow path.
"""
