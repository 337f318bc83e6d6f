"""What a campaign's annotators arrive at together: consensus, disagreements, decisions and ratings.

Begin with `find_consensus`.
"""
