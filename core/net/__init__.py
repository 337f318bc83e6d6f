"""Everything that leaves this machine: HTTP requests and downloads; libraries' telemetry is switched off.

Begin with `http`; a file that has to arrive whole comes by `download`. Needs no PyTorch.
"""
