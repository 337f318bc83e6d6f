"""The people of a shared server: accounts, logins, invitations, and what each has seen.

Begin with `User` and `Login`.
"""
