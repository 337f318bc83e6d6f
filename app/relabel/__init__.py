"""The pages on which people label, compare and decide.

- pages, campaigns, new_campaign: the routes of pages; all campaigns and one of them; making one
- label, review, api: labelling a trace; the trace once submitted; what the script asks the server for
- agreement, agreement_measure, agreement_tables, agreement_heatmap: how far people agree
- adjudicate: deciding where they do not
- disputes: disputes of a benchmark's labels
"""
