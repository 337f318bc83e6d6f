"""Labels from people: the pages to label on, and what they ask the server for."""
