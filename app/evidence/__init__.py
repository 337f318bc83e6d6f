"""The Evidence page: what later steps did to earlier verdicts.

- page, address: the page and its address
- gallery: the traces of a dataset in which later steps changed a verdict
- evidence, trace, sentences: one trace: its hindsight matrix, as HTML, in words
- presentation: the same as a talk gives it, one thing after the other
- leave_one_out: verdicts with one step left out
- routes, file: what the page asks for beside itself; the file to send to somebody
"""
