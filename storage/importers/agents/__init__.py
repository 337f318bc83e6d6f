"""The kinds of agents' logs, one module each. Turns of an assistant are steps, and everything else is context.

Begin with `turns`, which reads messages in every form; the other modules find the messages in their format.
"""
