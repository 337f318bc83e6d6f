"""Traces as token ids, with the positions at which their steps are read.

Start with `PromptTemplate` and `Encoder`.
"""
