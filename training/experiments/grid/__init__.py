"""The controlled grid: sizes, data, masks and seeds, trained alike and measured on the same traces.

Begin with `Design`, its YAML file, and `Grid`, which runs it.
"""
