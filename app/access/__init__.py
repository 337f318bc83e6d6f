"""Access rights: who may do what, decided before any page or route runs.

Start with `Right`. A route declares the rights it needs with `RequiresRight`, and `Rules` collects these
declarations and finds the rule for each request.
"""
