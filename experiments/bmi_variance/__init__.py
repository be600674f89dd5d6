"""How noisy the gradients of Phase II are."""
