"""The Evidence page, which shows how later steps changed the verdicts on earlier ones.

Start with `open_evidence`, which opens one trace with its hindsight matrix, and `open_gallery`, which opens the
traces of a dataset that show the effect.
"""
