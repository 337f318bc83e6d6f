"""Traces in the store: imported, written, read and searched."""
