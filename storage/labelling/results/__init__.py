"""Results of a campaign: consensus, disagreements, decisions and ratings.

Start with `find_consensus`.
"""
