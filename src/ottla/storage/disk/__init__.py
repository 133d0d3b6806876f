"""The seam to the file system, the operating system's file system, and one in memory.

Begin with `filesystem`.
"""
