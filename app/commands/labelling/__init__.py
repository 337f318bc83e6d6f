"""Commands for people's labels: campaigns, agreement, exports and label patches."""
