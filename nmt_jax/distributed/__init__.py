"""Training by several devices and processes: sharding, start-up, and detection of lost processes."""
