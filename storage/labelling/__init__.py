"""Labels from people: campaigns, the log of annotation events, and everything derived from it.

- campaigns, plan, ordering: campaigns; the plan of one; the order of its traces
- queue, slots, progress: who labels which trace next, and until when; how far a campaign is
- record, annotation: recording annotation events; the annotation that follows from them
- review: what stands beside a person's labels once they are submitted
- disputes, patches: disputed gold labels, and label patches made of them
- results: what the annotators say together: consensus, decisions, ratings
- files: labels as files, and back
"""
