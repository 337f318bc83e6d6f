"""The files of agents' logs, one module each: turns of an assistant are steps, all else is context.

Begin with `turns`, which reads messages of every form; the other modules know where a format keeps them.
"""
