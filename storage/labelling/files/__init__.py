"""Labels as files, and back.

- export_labels, formats: the labels of a campaign in the format of a benchmark, one module each
- export_events, import_events: a campaign with its whole log, and back
- import_labels, import_annotations, import_prm800k, import_tools: labels of a file into a campaign
- trace_index: the traces that labels are of, by what they say
- rows: the rows of label files, checked
"""
