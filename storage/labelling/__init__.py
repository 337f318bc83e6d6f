"""Labels from people: campaigns, the queue, the log of events, and what is derived from it."""
