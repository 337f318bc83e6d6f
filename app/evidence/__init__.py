"""The Evidence page: how later steps changed the verdicts on earlier ones.

Begin with `open_evidence`, which gives one trace with its hindsight matrix, and `open_gallery`, which gives the
traces of a dataset that show the effect.
"""
