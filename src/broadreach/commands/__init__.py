"""The commands of the `broadreach` program, one file each."""
