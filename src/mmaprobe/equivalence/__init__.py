"""When two datapaths are the same function: arguments, and a checker that trusts none of them."""
