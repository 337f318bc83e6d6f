"""Exporting labels to files and importing them from files, in StepSight's formats and those of other tools.

Begin with `export_labels` and `import_labels`.
"""
