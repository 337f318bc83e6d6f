"""Commands that work with people's labels: campaigns, agreement, exports and label patches."""
