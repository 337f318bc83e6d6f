"""Everything that leaves this machine: requests over HTTP, downloads, and the libraries' reports that never do.

Begin with `http`; a file that has to arrive whole comes by `download`. Needs no PyTorch.
"""
