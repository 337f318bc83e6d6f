"""Commands that run the server, manage its users, back up its store and restore it."""
