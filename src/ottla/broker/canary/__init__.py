"""The standing canary: records that prove each second that the brokers take and return them.

Begin with `canary.py`.
"""
