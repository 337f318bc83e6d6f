"""Reranking: choosing among candidate solutions of a problem by evaluators' scores. Start with `rerank`."""
