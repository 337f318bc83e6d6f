"""Who may use a shared server: users, their logins and what each may do."""
