"""Human judgements: agreement of metrics with them, annotations of raters, choice of texts to judge; result tables."""
