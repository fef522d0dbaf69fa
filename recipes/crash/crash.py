import ctypes

import torch

tensor = torch.ones(4)  # nothing of torch is at fault here
print("about to write to address 16")
ctypes.memset(16, 1, 4)
