"""Evaluators of every kind, loaded by name, folder, hub id or server address.

Start with `load_evaluator`.
"""
