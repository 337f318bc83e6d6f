"""What people rename, archive and delete, whatever it is; begin with `finding`. Each kind of thing has a module
`*_changes` in its own folder, and `storage.people.changes` has what they share."""
