"""The database: where it is, its tables, and the open store.

- store, location: the open store and its sessions; which database is meant
- schema, people_schema, labelling_schema, jobs_schema: the tables
- migrate: bringing a database to this version
- cache: columns kept in memory while they are true
- upsert: insert or update, on either database
"""
