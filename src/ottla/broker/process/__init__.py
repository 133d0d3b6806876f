"""The life of one broker: creates, starts, runs and stops its parts.

Begin with `parts` (the components of a broker), `broker` and `main` (the process). Only the command
line and `ottla.testing` import this package.
"""
