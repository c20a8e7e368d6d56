/* SPDX-License-Identifier: Apache-2.0
 *
 * graph: a network as data: nodes in computation order, each producing one tensor of channels x
 * height x width floats per image. Holds shapes, parameters and counts; backends compute.
 *
 * A network of trainer/networks.c builds its graph with the calls below; each call adds a node and
 * returns its number. Errors (bad shape, out of memory) are kept in the graph, so
 * that a network reads as a list; graph_seal() reports the first one.
 */
#ifndef IOBENCH_TRAINER_GRAPH_H
#define IOBENCH_TRAINER_GRAPH_H

#include "kernels/kernels.h"

enum graph_kind {
    GRAPH_INPUT,
    GRAPH_CONVOLUTION,
    GRAPH_BATCH_NORM,
    GRAPH_RELU,
    GRAPH_MAX_POOL,
    GRAPH_AVERAGE_POOL, /* a window over the whole plane is a global pool */
    GRAPH_ADD,
    GRAPH_CONCAT, /* along channels */
    GRAPH_FULLY_CONNECTED,
    GRAPH_LRN, /* across channels, alpha divided by the size: kernels/kernels.h */
    GRAPH_DROPOUT,
};

enum { GRAPH_INPUTS_MAX = 8, GRAPH_NAME_BYTES = 48 };

struct graph_shape {
    uint32_t channels, height, width;
};

/* A square window with equal padding on all sides. */
static inline struct kernel_window graph_square(uint32_t side, uint32_t stride, uint32_t pad)
{
    return (struct kernel_window){.height = side,
                                  .width = side,
                                  .stride = stride,
                                  .pad_top = pad,
                                  .pad_left = pad,
                                  .pad_bottom = pad,
                                  .pad_right = pad};
}

enum graph_parameter_kind {
    GRAPH_WEIGHT, /* convolution: output x input/groups x height x width; fc: output x input */
    GRAPH_BIAS,
    GRAPH_GAMMA,
    GRAPH_BETA,
};

struct graph_parameter {
    char name[GRAPH_NAME_BYTES + 8]; /* "stage1.block2.conv3.weight" */
    enum graph_parameter_kind kind;
    uint32_t node;
    uint64_t count;   /* floats */
    uint64_t offset;  /* in the parameter arena, in BACKWARD order: last layer first, so that
                         finished gradients are a growing prefix */
    double deviation; /* of the initial normal distribution; 0: constant `start` */
    double start;
    bool ends_block; /* gamma of the last BN of a residual block */
    enum kernel_decay decay;
};

struct graph_node {
    char name[GRAPH_NAME_BYTES];
    enum graph_kind kind;
    uint32_t input_count;
    uint32_t inputs[GRAPH_INPUTS_MAX];
    struct graph_shape shape;    /* of the output */
    struct kernel_window window; /* of a convolution, pool or layer of one pixel; images: 0 */
    double epsilon, momentum;    /* BN; running = (1 - momentum) * running + momentum * new */
    uint64_t statistics;         /* BN: offset of its running means; variances follow */
    struct kernel_lrn lrn;       /* images: 0 */
    double dropout_rate;
    /* Indices into graph.parameters; UINT32_MAX: none. */
    uint32_t weight, bias, gamma, beta;
    /* Set by graph_seal(). */
    uint32_t consumers, consumer; /* how many inputs read the output; its last reader */
    bool needs_gradient;          /* it or a node before it has parameters */
};

struct graph {
    struct graph_node *nodes;
    uint32_t node_count;
    struct graph_parameter *parameters;
    uint32_t parameter_count;
    uint64_t parameter_floats; /* of the arena */
    uint64_t statistic_floats; /* BN running mean and variance, two per channel, in node order */
    uint32_t classes;
    int code; /* first error while building, with `reason` */
    char reason[160];
};

/* Cost of a network per image. */
struct graph_cost {
    uint64_t parameters;
    uint64_t forward_macs;     /* multiply-accumulates of convolutions and fc, as in publications */
    uint64_t training_macs;    /* with both gradients, except that of the image */
    uint64_t activation_bytes; /* all node outputs, FP32 */
    uint64_t kept_bytes;       /* those that gradients are computed from: no backend forgets them */
};

struct graph *graph_create(struct graph_shape input, uint32_t classes); /* node 0 is the input */
void graph_destroy(struct graph *graph);

uint32_t graph_convolution(struct graph *graph, const char *name, uint32_t input, uint32_t channels,
                           struct kernel_window window, uint32_t groups, bool bias);
/* ends_block: its output is what a residual block adds to its input; see
 * graph_start_as_identities(). */
uint32_t graph_batch_norm(struct graph *graph, const char *name, uint32_t input, bool ends_block);
uint32_t graph_relu(struct graph *graph, uint32_t input);
uint32_t graph_max_pool(struct graph *graph, uint32_t input, struct kernel_window window);
uint32_t graph_average_pool(struct graph *graph, uint32_t input, struct kernel_window window);
uint32_t graph_global_pool(struct graph *graph, uint32_t input);
uint32_t graph_add(struct graph *graph, uint32_t a, uint32_t b);
uint32_t graph_concat(struct graph *graph, const uint32_t *inputs, uint32_t count);
uint32_t graph_fully_connected(struct graph *graph, const char *name, uint32_t input,
                               uint32_t channels);
uint32_t graph_lrn(struct graph *graph, uint32_t input, uint32_t size, double alpha, double beta,
                   double k);
uint32_t graph_dropout(struct graph *graph, uint32_t input, double rate);

/* Order the parameters backward; the last node is the logits. Returns 0 or the first error. */
int graph_seal(struct graph *graph);
struct graph_cost graph_cost(const struct graph *graph);
/* Multiply-accumulates per image of a convolution or fully connected layer; 0 for other nodes. */
uint64_t graph_node_macs(const struct graph *graph, uint32_t number);
/* Floats in a node's output per image. */
uint64_t graph_node_floats(const struct graph_node *node);
/* The one consumer of a node, if it is of that kind; else 0. */
uint32_t graph_only_consumer(const struct graph *graph, uint32_t number, enum graph_kind kind);
/* The floats of the arena that are final after this node's backward pass; 0: as many as before. */
uint64_t graph_final_floats(const struct graph *graph, uint32_t number);

/* He-normal by fan-in, the classifier N(0, 0.01), gamma 1, the rest 0. A seed gives the same bits
 * on every backend. parameters: parameter_floats, canonical layout (see the enum). */
void graph_initialise(const struct graph *graph, uint64_t seed, float *parameters);
/* Initialise one of `parts` parts of them: together the same bits. A thread each. */
void graph_initialise_part(const struct graph *graph, uint64_t seed, uint64_t part, uint64_t parts,
                           float *parameters);
/* Make gammas that end a residual block start with 0. Return how many BN that are. Only for
 * a network that is trained: otherwise such a block does nothing. */
uint32_t graph_start_as_identities(struct graph *graph);
/* Running means 0, variances 1. statistics: statistic_floats. */
void graph_initialise_statistics(const struct graph *graph, float *statistics);

/* Fold a BN with running statistics, a factor and an offset per channel, into the preceding
 * convolution. weight: of the convolution; folded: its new weights; shift: a new bias per output
 * channel. norm 0: only reads the bias. */
void graph_fold_norm(const struct graph *graph, uint32_t convolution, uint32_t norm,
                     const float *parameters, const float *statistics, const float *weight,
                     float *folded, float *shift);

/* ---- networks ---- */

struct network {
    const char *name;
    const char *summary;
    const char *source; /* paper or model definition of the shapes */
    uint32_t side;      /* of the square input image it was designed for */
    uint32_t classes;
    void (*build)(struct graph *graph, const uint32_t *depths); /* add all nodes after the input */
    uint32_t depths[6]; /* blocks or layers per stage, if the network has stages; ends with 0 */
    /* The name of a layer in torchvision's model of the same network; NULL: it has none. */
    void (*torchvision_name)(const struct network *network, const char *layer,
                             char name[GRAPH_NAME_BYTES]);
    /* Published values to check against: parameters (exact for `classes`), forward GMACs. */
    uint64_t published_parameters;
    double published_gmacs;
    /* Networks without batch norm diverge at ResNet's rates: the batch size that the authors, or
     * Caffe, use with rate 0.01. 0: has batch norm. */
    uint32_t plain_batch;
    /* With batch norm, the share of ResNet's rate that SGD takes; 0: all of it. */
    double rate_share;
};

extern const struct network *const network_registry[]; /* NULL-terminated */
const struct network *network_find(const char *name);  /* NULL with a reason that lists all names */
/* Build a network for a supported side; otherwise NULL with a reason. */
struct graph *network_build(const struct network *network, uint32_t side, uint32_t classes);

#endif
