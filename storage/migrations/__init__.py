"""The migrations, run when a store is opened. A new one is a module `versions/NNNN_what_it_adds.py`."""
