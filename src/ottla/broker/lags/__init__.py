"""How far groups are from the end of the partitions that they read, and from losing records there.

Leaders know both (`reader_place`); coordinators know the committed offsets, and ask the leaders
(`group_lags`).
"""
