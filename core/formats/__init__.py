"""Checkpoint formats, one module each; a new one is a module and a line in `recognition`.

- recognition: the formats there are, and which of them a folder is in
- format: what the module of a format has to offer
- stepsight: our own, and any backbone with a score head
- reasoneval, math_shepherd, qwen_prm: three public families
- value_head: language models with a value for each token, Skywork's and PQM
- answers, two_token, chat_two_token: language models that answer each step with one of two tokens
- llemma_prm, ensemble_prm, log_ratio: three more public families
- masked_tokens, prefix_value: two that are asked about each step by itself
- chat: chats in the words of a folder's own chat template
- token_classification: any token classifier of Transformers
"""
