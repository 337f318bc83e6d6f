"""HTTP requests with retries and size limits, and downloads that resume. Does not need PyTorch.

Start with `http`. A `Downloader` fetches whole files.
"""
