"""Branch-JEPA by its equations, in PyTorch: what the C library is compared with.

A set of weights is a dictionary from PyTorch state_dict names to tensors, and everything here is a
function of such dictionaries; nothing keeps state.

    sizes       the widths and counts of a network
    scenes      stand-in traffic with realistic magnitudes and masks
    network     parameters, initialization, forward pass: written out, no torch.nn layers
    modules     the same networks from torch.nn layers, for users' checkpoints and for timing
    objectives  every training objective as a set of weighted terms
    training    gradients, clipping, AdamW, EMA, learning-rate schedule
    metrics     evaluation metrics, and how far each scene is from a decision boundary
    files       deterministic safetensors writer and a small reader
    digest      the digest of a checkpoint file
    checkpoint  loads a model file into the modules, and writes one (docs/PYTORCH.md)

It is meant to be read and to be right. It is never needed to build or run the library.

Shape letters: B scenes, T observed steps, N neighbors, P polylines, Q points of a polyline,
E embedding, D latent width, K branches, L latents (K, or 1 for the output-only control),
F future steps.
"""
