"""Who may do what: below all pages and routes.

- rights, rules: what people may do, and how routes say what they need
- pages: the pages, and who may open them
- current: the request that is being answered
- headers: what responses let a page do
"""
