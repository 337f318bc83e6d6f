"""Controlled grids of training runs that vary in size, data, mask and seed and are measured on the same traces.

Start with `Design`, which is read from a YAML file, and `Grid`, which runs it.
"""
