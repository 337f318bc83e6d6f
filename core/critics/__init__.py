"""Critics: chat models that write their verdicts on steps.

presets     what is asked, one file each in `assets/critics`
reading     verdicts out of what is answered
settings    what an address says of a critic
asking      the questions about a trace, and the judgment that their answers make
scoring     asking a server
evaluator   all of it as an evaluator
"""
