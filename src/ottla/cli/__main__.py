"""`python -m ottla.cli` is the command `ottla`."""

from ottla.cli.command import main

main()
