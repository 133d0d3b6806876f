"""What a log remembers of idempotent and transactional producers.

Begin with `state`.
"""
