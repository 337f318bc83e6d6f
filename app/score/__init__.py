"""The Score page, which judges a pasted solution online and offline, side by side.

Begin with `ScorePage`.
"""
