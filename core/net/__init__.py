"""HTTP requests with retries and size limits, and downloads that resume. Does not need PyTorch.

Start with `http`, or with `Downloader` for downloading whole files.
"""
