"""Human judgements, and the agreement of metrics with them.

judgements, agreement, comparison   coefficients of metrics, confidence intervals and significance tests
ratings, raters, error_weights      scores of texts by several raters, their agreement, weights of annotated errors
disagreement, sign_test             pairs of texts that tell two metrics apart, and how many are needed
pyramid                             content units of summaries
"""
