"""`python -m ottla.cli` is the command `ottla`."""

from ottla.cli import main

main()
