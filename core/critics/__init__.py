"""Critics: chat models that write verdicts on steps in words.

Start with `open_critic`. A `Preset` is one way of questioning a critic, stored as a file in `assets/critics`.
"""
