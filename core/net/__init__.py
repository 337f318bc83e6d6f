"""HTTP requests with retries and bounded answers, and downloads that resume.

Begin with `http`; a `Downloader` brings whole files. Needs no PyTorch.
"""
