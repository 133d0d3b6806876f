"""What all clients share: errors, checks of arguments and settings, values of offsets.

Begin in `errors`.
"""
