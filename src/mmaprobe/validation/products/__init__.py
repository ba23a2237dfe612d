"""Two whole matrix products held against each other: every element of D, and the smallest that tells them apart."""
