"""Traces into judgments.

- scorer, client, abstract: the Scorer: traces in, judgments out, in one of three modes; the same on a server; what
  both offer
- forward, packed, cpu: the forward pass for any backbone and device; the one for decoders on a processor; the
  fastest, for small Llamas there
- next_step, continued, kv_cache: candidates for the next step; what a causal decoder, or any causal backbone, has
  read already
"""
