"""The Browse page.

- page, address, selection: the page; its address; what the address selects
- facets, evaluator_choice: the conditions with their counts; the evaluators to choose from
- trace_list, hits: the list; where a text stands in it
- trace_view, trace_judgments, verdicts, people: one trace with evaluators, people and disputes beside gold
- trace_file: that trace as JSON and CSV
- deep_links: the status of an address that shows nothing
"""
