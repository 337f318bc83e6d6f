"""Labels from people: campaigns, the log of what they did, and everything derived from it.

- campaigns, plan, ordering: campaigns; what one is to be; the order of its traces
- queue, slots, progress: who labels which trace next, and until when; how far a campaign is
- record, annotation: writing annotation events; the annotation that they amount to
- review: what stands beside a person's labels once they are submitted
- disputes, patches: disputed gold labels, and label patches made of them
- results: what the annotators say together: consensus, decisions, ratings
- files: labels as files, and back
"""
