"""The base of all clients: errors, checks of arguments and settings, values of offsets.

Begin in `errors`.
"""
