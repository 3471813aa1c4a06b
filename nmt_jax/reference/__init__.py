"""Pages of the reference that are generated from the code: flags of verbs, and the interface in Python."""
