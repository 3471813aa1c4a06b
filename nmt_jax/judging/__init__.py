"""Agreement of metrics with human judgements: files of judgements, metric scores of the judged texts, result tables."""
