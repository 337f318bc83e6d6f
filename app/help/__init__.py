"""Help: the manual and a page about StepSight, both shipped with the package and served without a network.

Begin with `document_html`, which renders a page of the manual, and `help_routes`, which serves it.
"""
