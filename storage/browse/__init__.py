"""What Browse asks of the store: filters, columns, facets, revisions."""
