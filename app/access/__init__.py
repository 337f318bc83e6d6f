"""Access rights: who may do what, decided before any page or route runs.

Start with `Right`. A route declares the rights it needs with `RequiresRight`, and `Rules` looks them up for each
request.
"""
