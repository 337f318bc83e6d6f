"""The controlled grid of sizes, data, masks and seeds, trained in the same way and measured on the same traces.

Begin with `Design`, which is read from a YAML file, and `Grid`, which runs it.
"""
