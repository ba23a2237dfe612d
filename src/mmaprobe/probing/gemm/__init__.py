"""What is asked of whole matrix products: all elements of D in one call."""
