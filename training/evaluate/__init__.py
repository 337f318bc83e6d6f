"""Measuring evaluators against gold."""
