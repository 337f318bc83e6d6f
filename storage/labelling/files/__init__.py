"""Labels as files, and back.

- export_labels, formats: the labels of a campaign in the layout of a benchmark, one module each
- export_events, import_events: a campaign with its whole log, and back
- import_labels, answer_file, import_answers: labels of a file into a campaign
"""
