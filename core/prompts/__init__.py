"""Traces as token ids, with the positions at which their steps are read.

Begin with `PromptTemplate` and `Encoder`.
"""
