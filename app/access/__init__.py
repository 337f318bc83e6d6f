"""Rights: who may do what, decided before any page or route runs.

Begin with `Right`; a route declares the rights it needs by `RequiresRight`, and `Rules` finds them for a request.
"""
