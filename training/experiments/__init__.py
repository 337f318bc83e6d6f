"""The paper's experiments: the grid, data filtering, fine-tuning and reranking, a folder each."""
