"""What the annotators of a campaign say together: answers, consensus, decisions, ratings."""
