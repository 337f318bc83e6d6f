"""Who uses a shared server.

- users, passwords: people, their roles and their passwords
- invitations: links with which somebody becomes one of them; overview: each with what they did
- logins, attempts: who is logged in; failed attempts, and the pause after too many
- exposures: who has seen scores, marked equations, gold or labels of which text, and who may see them
- server_secret: what keeps others from working out who is who and what is drawn
"""
