"""The people of a shared server: their accounts, logins and invitations, and what each of them has seen.

Begin with `User` and `Login`.
"""
