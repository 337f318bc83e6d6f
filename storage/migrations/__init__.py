"""The migrations, which run when a store is opened. To add one, write a module `versions/NNNN_what_it_adds.py`."""
