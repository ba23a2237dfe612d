"""Pictures of summation trees."""
