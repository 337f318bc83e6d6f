"""Commands of people's labels: campaign, export, agreement, patch.

- conditions: options that say which traces of a dataset are meant
"""
