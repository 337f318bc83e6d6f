"""Reranking: choosing among the candidate solutions of a problem by evaluators' scores. Start with `rerank`."""
