"""The file system interface, the operating system's file system, and one in memory.

Begin with `filesystem`.
"""
