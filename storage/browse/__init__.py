"""What Browse asks of the store.

- filters: which traces are meant: the conditions
- browse, facets: the traces that meet them, by page; every condition's values with counts
- filter_columns, verdict_columns: what is filtered and sorted by: of traces, of an evaluator's verdicts
- flips: traces by what later steps did to their verdicts
"""
