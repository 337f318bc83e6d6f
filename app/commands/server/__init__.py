"""Commands that run the server and look after its store."""
