"""The pages, the HTTP server and the `stepsight` command."""
