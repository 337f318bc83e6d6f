"""The Evidence page: what later steps did to earlier verdicts.

- page, evidence_address: the page and its address
- evidence_list: the traces of a dataset in which later steps changed a verdict
- evidence, evidence_view, story: one trace: what is known of it, as HTML, in words
- left_out: verdicts with one step left out
- evidence_routes, evidence_file: the file to send to somebody
"""
