"""Critics: chat models that write their verdicts on steps in words.

Begin with `open_critic`; a `Preset` is one way of asking, a file in `assets/critics`.
"""
