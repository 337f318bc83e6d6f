"""Measurements as tables, figures and pages."""
