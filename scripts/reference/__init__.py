"""The PyTorch reference of Branch-JEPA, with which the C library is compared.

Weights are a dictionary from PyTorch state_dict names to tensors. All functions take such dictionaries and
keep no state.

    sizes       the widths and counts of a network
    scenes      synthetic scenes with realistic magnitudes and masks
    network     parameters, initialization and forward pass as equations, without torch.nn layers
    modules     the same networks made of torch.nn layers, for users' checkpoints and for timing
    objectives  every training objective as a set of weighted terms
    training    gradients, clipping, AdamW, EMA, learning-rate schedule
    metrics     evaluation metrics, and the distance of each scene from a decision boundary
    files       deterministic safetensors writer and a small reader
    digest      the digest of a checkpoint file
    checkpoint  loads a model file into the modules, and writes one (docs/PYTORCH.md)

The code is written to be readable and correct. It is not needed to build or run the library.

Shape letters: B scenes, T observed steps, N neighbors, P polylines, Q points of a polyline,
E embedding, D latent width, K branches, L latents (K, or 1 for the output-only control),
F future steps.
"""
