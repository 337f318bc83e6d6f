"""A trace as token ids, with the positions at which its steps are read.

Begin with `PromptTemplate` and `Encoder`.
"""
