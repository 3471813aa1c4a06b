"""Several processes that train as one: where they meet, what they agree on, how they notice that one is gone."""
