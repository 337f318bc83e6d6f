"""The People page, and invitations.

- page: who may log in, in which role, and what admins change of it
- invitation: what somebody does who was invited
"""
