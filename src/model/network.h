/* network.h - the layers after the context: atoms, router and decoder, for a block of scenes.
 *
 *   branch       context --atom k--> u_k --decoder--> y_k      context --router--> logits
 *   output-only  context --atom----> u --trunk--> base + scale_k * residual_k = y_k
 *
 *   codebook     context --atom----> u        (the codes are not part of the network)
 *   variational  see variational.h
 *
 * L is the number of latents per scene: K, or 1 for models with one predictor. Only models with a
 * scene encoder have a decoder. Reconstruction decodes the target latent z with the same decoder.
 * An output-only model reconstructs with its base path alone.
 *
 * Winner takes all: if b->winner selects one latent per scene, only this latent has a gradient, and
 * the backward pass computes only its row. The rows of the other latents are neither read nor
 * written.
 *
 * In training, the atoms have no packed weights here, because train/atoms.c runs them over the
 * whole batch.
 */
#ifndef BJ_MODEL_NETWORK_H
#define BJ_MODEL_NETWORK_H

#include "core/arena.h"
#include "model/params.h"
#include "nn/linear.h"

typedef struct bj_network {
    const bj_arch *arch;
    const bj_kernels *k;
    int L; /* latents per scene */
    int K; /* number of branch weights per scene: the number of atoms, or 1 for models with one
              predictor */
    bj_linear atom_in[BJ_MAX_ATOMS], atom_out[BJ_MAX_ATOMS]; /* (L) */
    bj_linear router_in, router_out;                         /* out == 0: no router */
    bj_linear decoder_in, decoder_out;                       /* or trunk and base head; out == 0: no
                                                                decoder */
    bj_linear residual[BJ_MAX_ATOMS];                        /* output-only */
    bj_linear prior_in, prior_out, posterior_in, posterior_out; /* out == 0: not variational */
    const bj_real *step_scale, *segment_scale;               /* (K,F) (K,F/10) */
} bj_network;

void bj_network_init(bj_network *n, bj_arena *arena, const bj_kernels *k, const bj_arch *arch,
                     const bj_layout *layout, const bj_real *weights, int training);
/* Initializes only the layers that bj_network_reconstruct needs. L is 0. */
void bj_network_init_decoder(bj_network *n, bj_arena *arena, const bj_kernels *k,
                             const bj_arch *arch, const bj_layout *layout, const bj_real *weights);
int bj_network_prepare_items(const bj_network *n);
void bj_network_prepare(const bj_network *n, int item);

/* Activations of M consecutive scenes. */
typedef struct bj_network_block {
    int M;
    const bj_real *context;   /* (M,D) */
    bj_real *atom_hidden;     /* (M,L,atom_hidden) */
    bj_real *u, *inverse;     /* (M,L,D) (M,L) */
    bj_real *router_hidden;   /* (M,router_hidden) */
    bj_real *logits;          /* (M,K) contiguous */
    bj_real *decoder_hidden;  /* (M,L,decoder_hidden or trunk) */
    bj_real *y;               /* (M,K,2F) */
    bj_real *base, *residual; /* (M,2F) (M,K,2F) output-only */
    bj_real *z, *z_hidden;    /* (M,D) (M,decoder_hidden) target */
    bj_real *rec;             /* (M,2F) */
    size_t ldc, lda, ldu, ldr, ldd, ldy; /* row strides of context, atom hidden, latents, router
                                            hidden, decoder hidden, trajectories */
    /* gradients; the objective fills in du, dlogits, dy and drec */
    bj_real *du, *dlogits, *dy, *drec;
    bj_real *dcontext, *datom_hidden, *drouter_hidden, *ddecoder_hidden, *dz_hidden;
    bj_real *dbase, *dresidual, *dscale; /* (M,2F) (M,K,2F) (M,K,F) output-only */
    bj_real *dz;              /* (M,D), NULL unless the target latent is trained */
    size_t lds;               /* stride of dscale rows */
    /* see variational.h */
    bj_real *eps;                          /* (M,V) */
    bj_real *prior, *posterior;            /* (M,2V) */
    bj_real *prior_hidden, *posterior_hidden; /* (M,noise_hidden) */
    bj_real *posterior_x, *generator_x;    /* (M,D+action+D) (M,D+action+V) */
    bj_real *dprior, *dposterior, *dprior_hidden, *dposterior_hidden, *dposterior_x, *dgenerator_x;
    size_t ldn, ldp, ldg;                  /* strides of hidden, posterior_x, generator_x */
    const int *winner;        /* (M) index of the only latent with a gradient; NULL: all latents
                                 have one */
    bj_real *compact[3];      /* with winner: scratch of shape (M, bj_network_compact_width())
                                 each */
    size_t ldk;               /* stride of compact */
} bj_network_block;

/* Returns the width of the widest row that the winner-takes-all backward pass gathers. */
int bj_network_compact_width(const bj_arch *arch);

/* Computes the normalized u, the logits and y. The atoms or bj_variational_forward_block must have
 * run. */
void bj_network_read(const bj_network *n, const bj_network_block *b);
/* Computes rec from z. */
void bj_network_reconstruct(const bj_network *n, const bj_network_block *b);

/* Compute the logits and u_i from the context, with row strides `lda` and `ldu`. Only for networks
 * that are not being trained. */
void bj_network_route(const bj_network *n, const bj_network_block *b);
void bj_network_atom(const bj_network *n, const bj_network_block *b, int i, bj_real *hidden,
                     size_t lda, bj_real *u, size_t ldu);
/* Decodes u (M,rows,D) to y. `rows` is the number of latents per scene, either all or one. */
void bj_network_decode(const bj_network *n, const bj_network_block *b, int rows);

/* Computes y (2F) = base + scale_k * residual for output-only models. */
void bj_network_add_residual(const bj_network *n, bj_real *y, const bj_real *base,
                             const bj_real *residual, int k);

/* Flags for the incoming gradients that are present. */
enum { BJ_FROM_LATENT = 1, BJ_FROM_DECODED = 2, BJ_FROM_ROUTER = 4 };
/* Computes the gradient du before normalization from du and dy. If `winner` is set, only the rows
 * of the winners are computed. */
void bj_network_latents_backward(const bj_network *n, const bj_network_block *b, unsigned from);
/* Computes dcontext from dlogits. `flags` is BJ_GEMM_ADD or 0. */
void bj_network_route_backward(const bj_network *n, const bj_network_block *b, int flags);
/* Computes dz_hidden from drec, and dz if it is not NULL. */
void bj_network_reconstruct_backward(const bj_network *n, const bj_network_block *b);

#endif
