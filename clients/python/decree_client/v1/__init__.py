"""The contract: its modules are generated when the package is built."""
