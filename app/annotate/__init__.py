"""The Annotate pages, where people label traces, see how well they agree, and settle the steps on which they
disagree.

Start with `label_html`, which renders the labelling page, and `campaign_html`, which renders the page of a
campaign.
"""
