"""`broadreach analyze ...`: what training changed, read from run folders and Hugging Face directories."""
