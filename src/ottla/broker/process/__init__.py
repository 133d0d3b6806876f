"""The life of one broker: its parts made, started, served and stopped, and its chores.

Begin with `broker` (the composition root) and `main` (the process). Nothing else imports from here
but the command line and `ottla.testing`.
"""
