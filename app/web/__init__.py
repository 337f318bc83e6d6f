"""What every page and route rests on.

- pages, gradio_page, page_address: the pages, Gradio's part in them, addresses
- html, text, judged: templates and the frame of every page; text and maths as HTML; a judged trace
- rules, rights, access, gate, headers, login: who may ask for what, and who is asking
- failures: what went wrong, as an answer
"""
