"""A trace as token ids.

- template: the texts around problem and steps, and where a step is read
- encoding: token ids, and the positions at which scores are read; the calls of those that are asked step by step
"""
