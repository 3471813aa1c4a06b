"""Drawing with matplotlib and as HTML: one module per kind of plot."""
