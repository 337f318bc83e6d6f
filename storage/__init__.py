"""The store: one database of traces, judgments and labels.

- database, migrations: the open store, its tables, and bringing an older one up to date
- importers: benchmark files, one module each
- traces: traces in the store: imported, written, read, searched
- judgments: judgments, evaluators, thresholds, score files
- jobs: work that outlives a request, and the files that browsers send for it
- browse: a dataset filtered, counted, sorted, by page
- exports: traces and judgments as files
- people: users, logins, and what they have seen
- labelling: campaigns, annotations, consensus, decisions, disputes, and files of labels
- backup: a store as one file, and back
"""
