"""How much pieces of text tell of each other: estimates and bounds, in nats."""
