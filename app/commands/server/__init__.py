"""Commands that run the server, manage its users, and back up its store."""
