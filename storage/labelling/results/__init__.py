"""What the annotators of a campaign say together.

- annotations, ratings: submitted annotations; the same as arrays, beside gold
- consensus: what they say together of each step
- disagreements, decisions: steps that somebody has to decide; what was decided
"""
