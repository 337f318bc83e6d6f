"""The pages on which people label, compare and decide.

- pages, forms, campaign_list: the addresses, their forms, and the campaigns
- campaign, campaign_new, campaign_summary: one campaign: its page, making one, what it asks for
- label, review, api: labelling a trace; the trace once submitted; what both ask the server for
- agreement, agreement_measure, agreement_tables, agreement_heatmap: how far people agree
- adjudicate, adjudicate_step: deciding where they do not
- disputes: disputes of a benchmark's labels
"""
