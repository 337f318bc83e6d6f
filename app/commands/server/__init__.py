"""Commands of the server and its store: app, work, user, backup, restore."""
