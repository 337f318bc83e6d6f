"""The pages on which people label, compare and decide.

- pages: the addresses
- campaigns, new_campaign: the campaigns, and one of them; making one
- label, review, api: labelling a trace; the trace once submitted; what both ask the server for
- agreement, agreement_measure, agreement_tables, agreement_heatmap: how far people agree
- adjudicate: deciding where they do not
- disputes: disputes of a benchmark's labels
"""
