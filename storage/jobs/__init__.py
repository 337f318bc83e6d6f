"""Work that outlives a request and a server.

- jobs: the queue, and how a worker holds a job
- imports: what an import job is asked for
- import_work: doing it
- fetches: what a job to fetch an evaluator is asked for
- preview: what a file would become
- folders: importing whatever a folder holds
- uploads: files that browsers sent, until a job has read them
"""
