"""The command line: parses arguments, calls the packages below, and prints their answers.

Each noun has a module or package with its verbs: `ottla group reset` is in `group`. `diagnosis`,
`operations` and `client` do the work; `text` parses what people type, and formats tables. Begin
with `command`.
"""
