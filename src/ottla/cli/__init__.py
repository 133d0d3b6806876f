"""The command line: reads words, calls the packages below, and prints their answers.

A folder for each noun, in it a file for each verb: `ottla topic create` is `topic/create`, and
`ottla produce`, which has no noun, `produce/produce`. What is found out or changed is the work of
`diagnosis`, `operations` and `client`; `text` reads people's words and makes tables. Begin with
`command`.
"""
