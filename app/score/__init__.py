"""The Score page: a pasted solution, judged online and offline side by side.

Begin with `ScorePage`.
"""
