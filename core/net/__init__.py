"""HTTP requests with retries and size limits, in `http`. Does not need PyTorch."""
