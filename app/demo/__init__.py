"""The demo: scoring a solution in a Gradio interface, on this machine or in a notebook.

Begin with `interface.demo`.
"""
