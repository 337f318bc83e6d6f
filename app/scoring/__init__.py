"""The evaluators that this server has loaded, and the queue of requests to each evaluator.

Start with `Evaluators`. A `Batcher` scores the requests that arrive at about the same time in one batch.
"""
