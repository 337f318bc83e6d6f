"""Labels given by people: campaigns, the append-only log of annotation events, and everything derived from the log.

Start with `Campaign` and with `Annotation`, the current state of one person's work on a trace. The results of a
campaign start with `find_consensus`.
"""
