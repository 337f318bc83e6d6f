"""The Score page, which judges a pasted solution online and offline, side by side.

Start with `ScorePage`.
"""
