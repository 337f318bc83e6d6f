"""What every page and route rests on.

- pages, address_page, page_address: the pages, those that follow from their address, addresses
- gradio_page: Gradio's part in the Score page
- bundles: the style sheets and scripts of the pages
- html, text, judged: templates and the frame of every page; text and maths as HTML; a judged trace
- failures: what went wrong, as an answer
"""
