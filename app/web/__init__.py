"""What every page and route rests on.

- pages, frame, gradio_page, page_address: the pages, the frame of each, Gradio's part in it, addresses
- html, text, judged, csv_text: templates; text and maths as HTML; a judged trace; CSV
- rules, rights, access, gate, headers, login: who may ask for what, and who is asking
- failures: what went wrong, as an answer
"""
