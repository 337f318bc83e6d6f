"""The Annotate pages, where people label traces, see how far they agree, and settle the steps on which they differ.

Start with `label_html`, which renders the labelling page, and `campaign_html`, which renders the page of a
campaign.
"""
