"""Labels as files, and labels from files, of StepSight and of other tools.

Begin with `export_labels` and `import_labels`.
"""
