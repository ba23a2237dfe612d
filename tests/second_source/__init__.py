"""What the package says, said again by somebody else: tables, layouts and answers to hold it against."""
