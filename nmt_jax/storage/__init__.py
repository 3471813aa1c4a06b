"""Where files lie, on this machine or in an object store, and how they are written whole."""
