"""The one room that makes noise for weights and sampling: a pure function of seed, step, member, name and index."""

from broadreach.noise.paper_precision import paper_perturb_, paper_restore_, paper_update_
from broadreach.noise.perturb import direction, direction_q, perturb_into, restore_into, rounding_share
from broadreach.noise.philox import NOISE_FORMAT
from broadreach.noise.sampling import SampleRows, sample_rows, sample_tokens
from broadreach.noise.table import TABLE_DIGEST, table_digest
from broadreach.noise.update import apply_update, digest, quantise, tensor_digests

__all__ = [
    "NOISE_FORMAT",
    "TABLE_DIGEST",
    "SampleRows",
    "apply_update",
    "digest",
    "direction",
    "direction_q",
    "paper_perturb_",
    "paper_restore_",
    "paper_update_",
    "perturb_into",
    "quantise",
    "restore_into",
    "rounding_share",
    "sample_rows",
    "sample_tokens",
    "table_digest",
    "tensor_digests",
]
