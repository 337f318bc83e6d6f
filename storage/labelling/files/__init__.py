"""Labels as files, and back.

- export_labels, formats: the labels of a campaign in the format of a benchmark, one module each
- export_events, import_events: a campaign with its whole log, and back
- import_labels, import_annotations, import_prm800k: labels of a file into a campaign
- rows: the rows of label files, checked
"""
