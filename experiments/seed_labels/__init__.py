"""What seed words say of documents, and what deletion leaves of them."""
