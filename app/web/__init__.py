"""What every page and route rests on.

- address_page, page_address: pages that follow from their address; addresses
- access, gate, login: who is asking; requests that come in at all; logging in
- gradio_page: Gradio's part in the Score page
- bundles: the style sheets and scripts of the pages
- html, judged, equations: templates and the frame of every page; a judged trace; equations that fail in it
- failures: what went wrong, as an answer
"""
