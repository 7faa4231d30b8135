"""Every table and figure of arXiv 2608.27351 as a command, one file each."""
