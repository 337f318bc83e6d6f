"""The Annotate pages: people label traces, see how far they agree, and decide the steps on which they differ.

Begin with `label_html` for labelling a trace and `campaign_html` for a campaign.
"""
