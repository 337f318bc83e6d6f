"""Commands of evaluators and what they say: score, evaluate, evaluators, calibrate, report, rerank.

- judging: the evaluators that a command line names, with what they have yet to judge
- critic_options, critics: how critics are asked, and what that takes
- processes: several processes that share the work of one command
"""
