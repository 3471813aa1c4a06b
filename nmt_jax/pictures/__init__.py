"""Pictures of runs and models: matplotlib figures, imported only when one is drawn."""
