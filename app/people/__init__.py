"""The People page, where admins invite people and change their roles, and the page that an invitation link
opens."""
