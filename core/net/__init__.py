"""HTTP requests with retries and size limits, and downloads that resume.

Begin with `http`. A `Downloader` fetches whole files. This package works without PyTorch.
"""
