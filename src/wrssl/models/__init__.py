"""Networks, and the split of any network into a backbone and its last Linear layer."""

from wrssl.models.build import build_model, list_models, outline_model
from wrssl.models.split import Split, split

__all__ = ["Split", "build_model", "list_models", "outline_model", "split"]
