"""Who may ask for what, and who is asking.

- rights, rules: what people may do, and how routes say what they need
- access, login, current: who is asking; logging in; the request that is being answered
- gate, headers: requests that come in at all; what responses let a page do
"""
