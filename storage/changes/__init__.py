"""Renaming and deleting the things in the store. Begin with `finding`. Each kind of thing has a module
`*_changes` in its own folder, and `storage.people.changes` has their common code."""
