"""A store as one file, and back.

- backup, restore: writing the file, checked, while the store is in use; putting one back
"""
