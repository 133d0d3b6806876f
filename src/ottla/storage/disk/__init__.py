"""The seam to the file system, the operating system's answer to it, and one in memory.

Begin with `filesystem`.
"""
