"""The users of a shared server: their accounts, logins and invitations, and what each of them has seen.

Start with `User` and `Login`.
"""
