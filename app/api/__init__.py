"""The HTTP API: scoring, and reading the store; a module per route's noun.

- service, context: the application that is mounted; what its routes work on
- scores, loops, evaluators, traces, jobs: the routes
- rewards, conversation: the routes of other servers of reward models; problem and steps as their clients send them
- streams: answers of many lines, each written as soon as it is there
- models: what requests and answers hold
- description: the OpenAPI document as a page
"""
