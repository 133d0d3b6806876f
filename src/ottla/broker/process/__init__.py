"""The life of one broker: its parts made, started, served and stopped.

Begin with `parts` (what a broker is made of), `broker` and `main` (the process). Nothing else
imports from here but the command line and `ottla.testing`.
"""
