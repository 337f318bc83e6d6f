"""The pages, the HTTP server and the `stepsight` command.

- server: the application: pages, routes, headers
- commands: the `stepsight` command, a module per subcommand
- web: what pages rest on: frame, templates, text as HTML, logins, rights, failures
- scoring: the loaded evaluators, and requests scored together
- score, evidence, browse, results, relabel, data, evaluators, jobs, people: the pages
- api: the HTTP API
"""
