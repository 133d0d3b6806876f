"""Records read from leaders: positions, fetching ahead, handing out.

Begin with `consumer`, then `fetcher`.
"""
