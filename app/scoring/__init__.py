"""The evaluators that this server has loaded, and the queue of requests to them.

Begin with `Evaluators`; a `Batcher` scores the requests that arrive together in one batch.
"""
