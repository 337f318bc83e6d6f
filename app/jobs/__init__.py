"""The Jobs page, and the process that works jobs off.

- page: the Jobs page
- worker, supervisor: the process that works jobs off, and what keeps it running
- orders: what the workers of a process are told
"""
