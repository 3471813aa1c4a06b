"""Tests that compare a GPU with the CPU: `make test-gpu`."""
