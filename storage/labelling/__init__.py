"""Labels from people: campaigns, the append-only log of annotation events, and everything derived from it.

Begin with `Campaign` and `Annotation`, the state that the log of one assignment folds to.
"""
