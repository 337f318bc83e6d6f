"""Schema migrations, which run when a store is opened. To add one, write `versions/NNNN_what_it_adds.py`."""
