"""The site that `make docs` builds: where its pages come from and how they link."""
