"""Exporting labels to files and importing them, in StepSight's own formats and those of other tools.

Start with `export_labels` and `import_labels`.
"""
