"""The joint results of a campaign's annotators: consensus, disagreements, decisions and ratings.

Begin with `find_consensus`.
"""
