"""Drawing responses, keeping them, and measuring them: Pass@K, Maj@K, intervals, paired differences."""
