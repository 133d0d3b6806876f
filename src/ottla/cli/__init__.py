"""The command line: reads words, calls the packages below, and prints their answers.

A module or package for each noun, with its verbs: `ottla group reset` is in `group`. What is found
out or changed is the work of `diagnosis`, `operations` and `client`; `text` reads people's words
and makes tables. Begin with `command`.
"""
