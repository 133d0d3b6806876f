"""Topics made, grown and deleted, through the coordination store.

Begin with `topics`.
"""
