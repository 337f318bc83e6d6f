"""Traces into judgments.

- scorer: the Scorer: traces in, judgments out, in one of three modes
- forward, cpu: the forward pass for any backbone and device; the fast one for Llama layers on a processor
- next_step, kv_cache: candidates for the next step; what a causal backbone has read already
"""
