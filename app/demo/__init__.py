"""The demo: scoring a solution in a Gradio interface, on this machine, in a notebook, or as a Space.

Begin with `interface.demo`; `step_scores` is its component for other people's apps.
"""
