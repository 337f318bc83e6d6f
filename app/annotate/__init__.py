"""The Annotate pages, on which people label traces, see how far they agree, and decide where they do not.

Begin with `label_html` for labelling a trace and `campaign_html` for a campaign.
"""
