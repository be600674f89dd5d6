"""Language models and what the rest of the library asks of them."""
