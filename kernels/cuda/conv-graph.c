#include "config.h"

#include "kernels/cuda/conv-graph.h"

/* Tensors of a graph; those without an address come last. */
enum
{
  X = 1,
  W,
  Y,
  BIAS,
  Z,
  SUM,    /* after the convolution */
  ADDED,  /* after the residual */
  BIASED, /* after the bias */
};

static int64_t
window_size (const RnConvProblem *p, int axis, int64_t in)
{
  int64_t span = p->dilation[axis] * (p->kernel[axis] - 1) + 1;
  int64_t room = in + 2 * p->pad[axis] - span;

  return room < 0 ? 0 : room / p->stride[axis] + 1;
}

static gboolean
are_positive (const int64_t *values, int n)
{
  for (int i = 0; i < n; i++)
    if (values[i] < 1 || values[i] > G_MAXINT32)
      return FALSE;
  return TRUE;
}

/* Do the elements of a tensor, and so its strides, stay within what the library and we count in? */
static gboolean
is_countable (int64_t a, int64_t b, int64_t c, int64_t d)
{
  int64_t n;

  return !__builtin_mul_overflow (a, b, &n) && !__builtin_mul_overflow (n, c, &n)
         && !__builtin_mul_overflow (n, d, &n) && n <= G_MAXINT64 / 8;
}

const char *
rn_conv_problem_check (const RnConvProblem *p)
{
  const int64_t sizes[] = { p->n, p->c, p->h, p->w, p->k, p->oh, p->ow, p->groups };

  if (!are_positive (sizes, G_N_ELEMENTS (sizes)) || !are_positive (p->kernel, 2)
      || !are_positive (p->stride, 2) || !are_positive (p->dilation, 2) || p->pad[0] < 0 || p->pad[1] < 0
      || p->pad[0] > G_MAXINT16 || p->pad[1] > G_MAXINT16 || p->dilation[0] > G_MAXINT16
      || p->dilation[1] > G_MAXINT16 || p->kernel[0] > G_MAXINT16 || p->kernel[1] > G_MAXINT16)
    return "a size of the convolution is out of range";
  if (!is_countable (p->n, p->c, p->h, p->w) || !is_countable (p->n, p->k, p->oh, p->ow)
      || !is_countable (p->k, p->c / p->groups, p->kernel[0], p->kernel[1]))
    return "a tensor of the convolution is too large";
  if (p->c % p->groups != 0 || p->k % p->groups != 0)
    return "the groups do not divide the channels";
  if (window_size (p, 0, p->h) != p->oh || window_size (p, 1, p->w) != p->ow)
    return "the output has not the size that the window gives";
  if (p->dtype != RN_F32 && p->dtype != RN_F16 && p->dtype != RN_BF16)
    return "convolutions are in f32, f16 or bf16";
  if (p->tf32 && p->dtype != RN_F32)
    return "TF32 is a way to compute in f32";
  if (p->kind != RN_CONV_FORWARD && (p->bias || p->residual || p->relu))
    return "only the forward direction is fused with what follows it";
  if ((p->residual || p->relu) && !p->bias)
    return "a fused convolution has a bias";
  if (p->bias && p->accumulate)
    return "a fused convolution adds by its residual";
  return NULL;
}

char *
rn_conv_problem_text (const RnConvProblem *p)
{
  static const char *const kinds[] = { "forward", "backward_data", "backward_weights" };
  static const char *const dtypes[] = { [RN_F32] = "f32", [RN_F16] = "f16", [RN_BF16] = "bf16" };
#define I G_GINT64_FORMAT
  return g_strdup_printf ("%s %" I "x%" I "x%" I "x%" I " -> %" I "x%" I "x%" I "x%" I " k%" I "x%" I " s%" I
                          "x%" I " p%" I "x%" I " d%" I "x%" I " g%" I " %s%s %s%s%s%s%s",
                          kinds[p->kind], p->n, p->c, p->h, p->w, p->n, p->k, p->oh, p->ow, p->kernel[0],
                          p->kernel[1], p->stride[0], p->stride[1], p->pad[0], p->pad[1], p->dilation[0],
                          p->dilation[1], p->groups, dtypes[p->dtype], p->tf32 ? " tf32" : "",
                          p->nhwc ? "nhwc" : "nchw", p->bias ? " +bias" : "", p->residual ? " +residual" : "",
                          p->relu ? " +relu" : "", p->accumulate ? " +accumulate" : "");
#undef I
}

static RnCudnnTensor *
tensor_new (RnCudnn *cudnn, const RnConvProblem *p, int id, gboolean is_virtual)
{
  RnCudnnTensorInfo info = { .id = id, .dtype = p->dtype, .nhwc = p->nhwc, .is_virtual = is_virtual };
  const int64_t source[4] = { p->n, p->c, p->h, p->w };
  const int64_t weights[4] = { p->k, p->c / p->groups, p->kernel[0], p->kernel[1] };
  const int64_t destination[4] = { p->n, p->k, p->oh, p->ow };
  const int64_t bias[4] = { 1, p->k, 1, 1 };
  const int64_t *dims = id == X ? source : id == W ? weights : id == BIAS ? bias : destination;

  for (int i = 0; i < 4; i++)
    info.dims[i] = dims[i];
  return rn_cudnn_tensor_new (cudnn, &info);
}

/* Ops, each reading what the one before it writes. */
typedef struct
{
  RnCudnnOp *ops[4];
  int n;
  RnCudnnTensor *last; /* owned: what the next op reads; NULL after a failure */
} Chain;

static void
chain_clear (Chain *chain)
{
  for (int i = 0; i < chain->n; i++)
    rn_cudnn_op_free (chain->ops[i]);
  rn_cudnn_tensor_free (chain->last);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Chain, chain_clear)

/* Takes @op and @output over. */
static void
chain_add (Chain *chain, RnCudnnOp *op, RnCudnnTensor *output)
{
  g_clear_pointer (&chain->last, rn_cudnn_tensor_free);
  if (op == NULL)
    {
      rn_cudnn_tensor_free (output);
      return;
    }
  chain->ops[chain->n++] = op;
  chain->last = output;
}

/* + the tensor @id, written to @output. */
static void
chain_add_sum (Chain *chain, RnCudnn *cudnn, const RnConvProblem *p, int id, int output_id)
{
  if (chain->last == NULL)
    return;
  g_autoptr (RnCudnnTensor) addend = tensor_new (cudnn, p, id, FALSE);
  RnCudnnTensor *output = tensor_new (cudnn, p, output_id, output_id != Y);
  RnCudnnOp *op =
      addend != NULL && output != NULL ? rn_cudnn_op_add_new (cudnn, chain->last, addend, output) : NULL;
  chain_add (chain, op, output);
}

static void
chain_add_relu (Chain *chain, RnCudnn *cudnn, const RnConvProblem *p)
{
  if (chain->last == NULL)
    return;
  RnCudnnTensor *output = tensor_new (cudnn, p, Y, FALSE);
  chain_add (chain, output != NULL ? rn_cudnn_op_relu_new (cudnn, chain->last, output) : NULL, output);
}

static void
chain_add_convolution (Chain *chain, RnCudnn *cudnn, const RnConvProblem *p)
{
  gboolean is_virtual = p->bias;
  g_autoptr (RnCudnnWindow) window = rn_cudnn_window_new (cudnn, p->pad, p->stride, p->dilation);
  g_autoptr (RnCudnnTensor) x = tensor_new (cudnn, p, X, FALSE);
  g_autoptr (RnCudnnTensor) w = tensor_new (cudnn, p, W, FALSE);
  g_autoptr (RnCudnnTensor) y = tensor_new (cudnn, p, is_virtual ? SUM : Y, is_virtual);
  RnCudnnOp *op = NULL;
  float beta = p->accumulate ? 1 : 0;

  if (window == NULL || x == NULL || w == NULL || y == NULL)
    return;
  switch (p->kind)
    {
    case RN_CONV_FORWARD:
      op = rn_cudnn_op_forward_new (cudnn, window, x, w, y, beta);
      break;
    case RN_CONV_BACKWARD_DATA:
      op = rn_cudnn_op_backward_data_new (cudnn, window, y, w, x, beta);
      break;
    case RN_CONV_BACKWARD_WEIGHTS:
      op = rn_cudnn_op_backward_weights_new (cudnn, window, x, y, w, beta);
      break;
    }
  chain_add (chain, op, g_steal_pointer (&y));
}

RnCudnnGraph *
rn_conv_graph_new (RnCudnn *cudnn, const RnConvProblem *p)
{
  g_auto (Chain) chain = { .n = 0 };

  chain_add_convolution (&chain, cudnn, p);
  if (p->residual)
    chain_add_sum (&chain, cudnn, p, Z, ADDED);
  if (p->bias)
    chain_add_sum (&chain, cudnn, p, BIAS, p->relu ? BIASED : Y);
  if (p->relu)
    chain_add_relu (&chain, cudnn, p);
  return chain.last != NULL ? rn_cudnn_graph_new (cudnn, chain.ops, chain.n) : NULL;
}

/* The library takes all addresses alike, of what it reads and of what it writes. */
static void
bind (int64_t *ids, void **addresses, int *n, int id, const void *address)
{
  ids[*n] = id;
  addresses[(*n)++] = (void *) (gsize) address;
}

int
rn_conv_graph_bind (const RnConvProblem *p, const RnConvPointers *pointers, int64_t ids[RN_CONV_MAX_TENSORS],
                    void *addresses[RN_CONV_MAX_TENSORS])
{
  int n = 0;

  bind (ids, addresses, &n, X, p->kind == RN_CONV_BACKWARD_DATA ? pointers->dx : pointers->x);
  bind (ids, addresses, &n, W, p->kind == RN_CONV_BACKWARD_WEIGHTS ? pointers->dw : pointers->w);
  bind (ids, addresses, &n, Y, p->kind == RN_CONV_FORWARD ? pointers->y : pointers->dy);
  if (p->bias)
    bind (ids, addresses, &n, BIAS, pointers->bias);
  if (p->residual)
    bind (ids, addresses, &n, Z, pointers->z);
  return n;
}

void *
rn_conv_output (const RnConvProblem *p, const RnConvPointers *pointers)
{
  switch (p->kind)
    {
    case RN_CONV_BACKWARD_DATA:
      return pointers->dx;
    case RN_CONV_BACKWARD_WEIGHTS:
      return pointers->dw;
    default:
      return pointers->y;
    }
}

int64_t
rn_conv_output_elements (const RnConvProblem *p)
{
  switch (p->kind)
    {
    case RN_CONV_BACKWARD_DATA:
      return p->n * p->c * p->h * p->w;
    case RN_CONV_BACKWARD_WEIGHTS:
      return p->k * (p->c / p->groups) * p->kernel[0] * p->kernel[1];
    default:
      return p->n * p->k * p->oh * p->ow;
    }
}
