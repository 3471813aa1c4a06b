"""Tasks: one module per `config.task`, and the interface that they share."""
