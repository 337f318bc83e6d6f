"""The controlled grid: sizes x data x masks x seeds, trained alike, measured on the same traces and compared."""
