"""Evidence: what later steps did to the verdict on earlier ones, as a page, a file and in words."""
