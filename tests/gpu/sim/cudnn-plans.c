/*
 * cudnn-plans.c: plans of the simulated cuDNN, and how they are written as JSON. The members are
 * those of cuDNN 9 (schema 4), so that a text can be damaged in the same ways.
 */
#include "config.h"

#include "tests/gpu/sim/cudnn-json.h"

#include <stdbool.h>
#include <string.h>

#define SCHEMA 4
#define KNOB "CUDNN_KNOB_TYPE_TILEK"

/* ---- writing plans ---- */

static const char *const type_names[] = { [CUDNN_DATA_FLOAT] = "CUDNN_DATA_FLOAT",
                                          [CUDNN_DATA_HALF] = "CUDNN_DATA_HALF",
                                          [CUDNN_DATA_BFLOAT16] = "CUDNN_DATA_BFLOAT16" };

/* An op as JSON: the descriptor, and the attributes with their names. */
typedef struct
{
  cudnnBackendDescriptorType_t kind;
  const char *name, *names[3]; /* of x, w, y of the forward direction */
  int attributes[3], window, alpha, beta;
} OpText;

#define FWD(name) CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_##name
#define DATA(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_##name
#define FILTER(name) CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_##name
#define PW(name) CUDNN_ATTR_OPERATION_POINTWISE_##name

static const OpText op_texts[] = {
  { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR",
    { "X", "W", "Y" },
    { FWD (X), FWD (W), FWD (Y) },
    FWD (CONV_DESC),
    FWD (ALPHA),
    FWD (BETA) },
  { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR",
    { "DX", "W", "DY" },
    { DATA (DX), DATA (W), DATA (DY) },
    DATA (CONV_DESC),
    DATA (ALPHA),
    DATA (BETA) },
  { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR",
    { "X", "DW", "DY" },
    { FILTER (X), FILTER (DW), FILTER (DY) },
    FILTER (CONV_DESC),
    FILTER (ALPHA),
    FILTER (BETA) },
  { CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
    "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR",
    { "X", "B", "Y" },
    { PW (XDESC), PW (BDESC), PW (YDESC) },
    PW (PW_DESCRIPTOR),
    -1,
    -1 },
};

static void
append_tensor (GString *json, const SimTensor *t, GHashTable *written)
{
  if (!g_hash_table_add (written, g_strdup_printf ("%" G_GINT64_FORMAT, t->id)))
    return;
  g_string_append_printf (json, "%s{\"name\":\"%" G_GINT64_FORMAT "\",\"dataType\":\"%s\",",
                          g_hash_table_size (written) > 1 ? "," : "", t->id, type_names[t->type]);
  sim_json_append_integers (json, "dim", t->dims, t->n_dims);
  g_string_append (json, ",");
  sim_json_append_integers (json, "stride", t->strides, t->n_dims);
  g_string_append_printf (json, ",\"isVirtual\":%s,\"ptrAlignment\":%" G_GINT64_FORMAT "}",
                          t->is_virtual ? "true" : "false", t->alignment);
}

static void
append_op (GString *json, const SimOpNode *op)
{
  const OpText *text = op_texts;
  while (text->kind != op->kind)
    text++;
  g_string_append_printf (json, "{\"operation\":\"%s\",", text->name);
  if (text->alpha < 0)
    g_string_append_printf (json, "\"mode\":\"%s\"",
                            op->pointwise.mode == CUDNN_POINTWISE_ADD ? "CUDNN_POINTWISE_ADD"
                                                                      : "CUDNN_POINTWISE_RELU_FWD");
  else
    {
      char number[2][G_ASCII_DTOSTR_BUF_SIZE];
      g_string_append_printf (json, "\"mode\":\"CUDNN_CROSS_CORRELATION\",\"alpha\":%s,\"beta\":%s,",
                              g_ascii_dtostr (number[0], sizeof number[0], op->alpha),
                              g_ascii_dtostr (number[1], sizeof number[1], op->beta));
      sim_json_append_integers (json, "pad", op->window.pad, op->window.n_dims);
      g_string_append (json, ",");
      sim_json_append_integers (json, "postPad", op->window.post_pad, op->window.n_dims);
      g_string_append (json, ",");
      sim_json_append_integers (json, "stride", op->window.stride, op->window.n_dims);
      g_string_append (json, ",");
      sim_json_append_integers (json, "dilation", op->window.dilation, op->window.n_dims);
    }
  g_string_append_printf (json, ",\"%s\":\"%" G_GINT64_FORMAT "\"", text->names[0], op->x.id);
  if (text->alpha >= 0 || op->has_b)
    g_string_append_printf (json, ",\"%s\":\"%" G_GINT64_FORMAT "\"", text->names[1],
                            text->alpha >= 0 ? op->w.id : op->b.id);
  g_string_append_printf (json, ",\"%s\":\"%" G_GINT64_FORMAT "\"}", text->names[2], op->y.id);
}

static char *
plan_to_json (const SimDescriptor *d)
{
  const SimGraph *graph = d->graph->as_graph;
  g_autoptr (GHashTable) written = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GString) json = g_string_new (NULL);

  g_string_printf (json, "{\"cudnnVersion\":%d,\"schemaVersion\":%d,\"operationGraph\":{\"tensors\":[",
                   CUDNN_VERSION, SCHEMA);
  for (int i = 0; i < graph->n_ops; i++)
    {
      const SimOpNode *op = &graph->ops[i];
      append_tensor (json, &op->x, written);
      if (op->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR || op->has_b)
        append_tensor (json, op->kind != CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ? &op->w : &op->b,
                       written);
      append_tensor (json, &op->y, written);
    }
  g_string_append (json, "],\"nodes\":[");
  for (int i = 0; i < graph->n_ops; i++)
    {
      g_string_append (json, i > 0 ? "," : "");
      append_op (json, &graph->ops[i]);
    }
  g_string_append_printf (json,
                          "]},\"GPUProfile\":%s,\"engine\":{\"engineId\":%" G_GINT64_FORMAT
                          ",\"smVersion\":%d,"
                          "\"knobChoices\":{\"" KNOB "\":%" G_GINT64_FORMAT "}}}",
                          d->profile->as_profile.members, d->choice.engine->index,
                          d->profile->as_profile.capability * 10, d->choice.knob);
  return g_string_free (g_steal_pointer (&json), FALSE);
}

/* ---- reading plans: descriptors are made and finalized as a program makes them ---- */

typedef struct
{
  cudnnStatus_t status; /* of the first step that failed */
  GHashTable *tensors;  /* SimDescriptor by name */
} Reading;

#define STEP(reading, call)                        \
  do                                               \
    if ((reading)->status == CUDNN_STATUS_SUCCESS) \
      (reading)->status = (call);                  \
  while (0)

static void
refuse (Reading *r, const char *what)
{
  STEP (r, sim_refuse (CUDNN_STATUS_BAD_PARAM, "%s", what));
}

static void
read_tensor (Reading *r, JsonObject *object)
{
  g_autoptr (SimDescriptor) d = sim_descriptor_new (CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const char *name = sim_json_string (object, "name"), *type_name = sim_json_string (object, "dataType");
  int64_t dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX], alignment = 0, id;
  int n_dims = sim_json_integers (object, "dim", dims),
      n_strides = sim_json_integers (object, "stride", strides);
  JsonNode *is_virtual = sim_json_member (object, "isVirtual", G_TYPE_BOOLEAN);
  int type = -1;

  for (int i = 0; type_name != NULL && i < (int) G_N_ELEMENTS (type_names); i++)
    if (g_strcmp0 (type_names[i], type_name) == 0)
      type = i;
  if (name == NULL || type < 0 || n_dims < 1 || n_strides < 1 || is_virtual == NULL
      || !sim_json_integer (object, "ptrAlignment", &alignment)
      || !g_ascii_string_to_signed (name, 10, G_MININT64, G_MAXINT64, &id, NULL))
    {
      refuse (r, "a tensor is damaged");
      return;
    }
  bool flag = json_node_get_boolean (is_virtual);
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, n_dims, dims));
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, n_strides, strides));
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment));
  STEP (r, sim_set (d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &flag));
  STEP (r, sim_finalize (d));
  g_hash_table_insert (r->tensors, g_strdup (name), g_steal_pointer (&d));
}

static SimDescriptor *
read_window (Reading *r, JsonObject *object)
{
  static const struct
  {
    const char *name;
    int attribute;
  } lists[] = { { "pad", CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS },
                { "postPad", CUDNN_ATTR_CONVOLUTION_POST_PADDINGS },
                { "stride", CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES },
                { "dilation", CUDNN_ATTR_CONVOLUTION_DILATIONS } };
  SimDescriptor *d = sim_descriptor_new (CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  int compute = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
  int64_t n_dims = 2;

  STEP (r, sim_set (d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n_dims));
  STEP (r, sim_set (d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute));
  STEP (r, sim_set (d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
  for (gsize i = 0; i < G_N_ELEMENTS (lists); i++)
    {
      int64_t values[CUDNN_DIM_MAX];
      int n = sim_json_integers (object, lists[i].name, values);
      if (n < 1)
        refuse (r, "a convolution is damaged");
      STEP (r, sim_set (d, lists[i].attribute, CUDNN_TYPE_INT64, n, values));
    }
  STEP (r, sim_finalize (d));
  return d;
}

static SimDescriptor *
read_pointwise (Reading *r, JsonObject *object)
{
  SimDescriptor *d = sim_descriptor_new (CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const char *name = sim_json_string (object, "mode");
  int mode = g_strcmp0 (name, "CUDNN_POINTWISE_ADD") == 0 ? CUDNN_POINTWISE_ADD : CUDNN_POINTWISE_RELU_FWD;
  int precision = CUDNN_DATA_FLOAT;

  if (mode != CUDNN_POINTWISE_ADD && g_strcmp0 (name, "CUDNN_POINTWISE_RELU_FWD") != 0)
    refuse (r, "a pointwise op is damaged");
  STEP (r, sim_set (d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
  STEP (r, sim_set (d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision));
  STEP (r, sim_finalize (d));
  return d;
}

static void
read_factor (Reading *r, SimDescriptor *d, JsonObject *object, const char *name, int attribute)
{
  JsonNode *node = json_object_get_member (object, name);
  if (node == NULL || !JSON_NODE_HOLDS_VALUE (node) || json_node_get_value_type (node) == G_TYPE_STRING)
    {
      refuse (r, "a factor is damaged");
      return;
    }
  float value = (float) json_node_get_double (node);
  STEP (r, sim_set (d, attribute, CUDNN_TYPE_FLOAT, 1, &value));
}

/* Internal descriptors are not in the program's list: their values are stored without looking there. */
static SimDescriptor *
read_op (Reading *r, JsonObject *object)
{
  const char *name = sim_json_string (object, "operation");
  const OpText *text = NULL;

  for (gsize i = 0; i < G_N_ELEMENTS (op_texts); i++)
    if (g_strcmp0 (op_texts[i].name, name) == 0)
      text = &op_texts[i];
  if (text == NULL)
    {
      refuse (r, "an op is damaged");
      return NULL;
    }
  gboolean is_pointwise = text->alpha < 0;
  SimDescriptor *d = sim_descriptor_new (text->kind);
  g_autoptr (SimDescriptor) window = is_pointwise ? read_pointwise (r, object) : read_window (r, object);
  STEP (r, sim_set_descriptors (d, text->window, 1, &window));
  for (int i = 0; i < 3; i++)
    {
      const char *tensor_name = sim_json_string (object, text->names[i]);
      SimDescriptor *tensor = tensor_name != NULL ? g_hash_table_lookup (r->tensors, tensor_name) : NULL;
      if (tensor != NULL)
        STEP (r, sim_set_descriptors (d, text->attributes[i], 1, &tensor));
      else if (tensor_name != NULL || !is_pointwise || i != 1)
        refuse (r, "Tensor is not found during deserialization");
    }
  if (!is_pointwise)
    {
      read_factor (r, d, object, "alpha", text->alpha);
      read_factor (r, d, object, "beta", text->beta);
    }
  STEP (r, sim_finalize (d));
  return d;
}

static SimDescriptor *
read_graph (Reading *r, JsonObject *object)
{
  JsonArray *tensors = sim_json_array (object, "tensors"), *nodes = sim_json_array (object, "nodes");
  SimDescriptor *graph = sim_descriptor_new (CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  g_autoptr (GPtrArray) ops = g_ptr_array_new_with_free_func ((GDestroyNotify) sim_descriptor_unref);

  if (tensors == NULL || nodes == NULL)
    refuse (r, "the graph is damaged");
  for (guint i = 0; r->status == CUDNN_STATUS_SUCCESS && i < json_array_get_length (tensors); i++)
    read_tensor (r, sim_json_element (tensors, i));
  for (guint i = 0; r->status == CUDNN_STATUS_SUCCESS && i < json_array_get_length (nodes); i++)
    {
      SimDescriptor *op = read_op (r, sim_json_element (nodes, i));
      if (op != NULL)
        g_ptr_array_add (ops, op);
    }
  STEP (r,
        sim_set_descriptors (graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, ops->len, (SimDescriptor **) ops->pdata));
  STEP (r, sim_finalize (graph));
  return graph;
}

/* The graph and the engine of a plan that was written by plan_to_json, for the device @profile. */
static cudnnStatus_t
read_plan (SimDescriptor *d, JsonObject *object, SimDescriptor *profile)
{
  g_autoptr (GHashTable) tensors =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) sim_descriptor_unref);
  Reading r = { .status = CUDNN_STATUS_SUCCESS, .tensors = tensors };
  JsonObject *graph = sim_json_object (object, "operationGraph"),
             *engine = sim_json_object (object, "engine"), *device = sim_json_object (object, "GPUProfile");
  int64_t version, schema, index, knob = 0;
  SimProfile made_for = { .members = NULL };

  if (!sim_json_integer (object, "cudnnVersion", &version))
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!json_object.HasMember(key)");
  if (version != CUDNN_VERSION)
    return sim_refuse (CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH, "cudnn_version != %d", CUDNN_VERSION);
  if (!sim_json_integer (object, "schemaVersion", &schema) || graph == NULL || engine == NULL
      || device == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!json_object.HasMember(key)");
  if (schema != SCHEMA)
    return sim_refuse (CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH, "schema_version != %d", SCHEMA);
  STEP (&r, sim_read_profile (device, &made_for));
  g_free (made_for.members);
  if (r.status == CUDNN_STATUS_SUCCESS
      && (made_for.capability != profile->as_profile.capability
          || made_for.n_multiprocessors != profile->as_profile.n_multiprocessors
          || made_for.driver != profile->as_profile.driver))
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, "the plan was made for another device");
  if (!sim_json_integer (engine, "engineId", &index))
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!json_object.HasMember(key)");
  if (sim_json_object (engine, "knobChoices") != NULL)
    sim_json_integer (sim_json_object (engine, "knobChoices"), KNOB, &knob);
  d->graph = read_graph (&r, graph);
  if (r.status != CUDNN_STATUS_SUCCESS)
    return r.status;
  d->choice = (SimChoice){ sim_engine_find (index), knob };
  if (d->choice.engine == NULL || knob < 0 || knob >= sim_engine_n_knobs (d->choice.engine))
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED, "no engine %" G_GINT64_FORMAT " with this knob", index);
  d->profile = sim_descriptor_ref (profile);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- plans ---- */

static cudnnStatus_t
load (SimDescriptor *d, const char *text, int64_t length)
{
  SimDescriptor *profile = sim_value_descriptor (d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 0);

  if (profile == NULL)
    {
      sim_fault ("a plan is read from JSON without a device; cuDNN crashes");
      return sim_refuse (CUDNN_STATUS_BAD_PARAM, "no device");
    }
  g_autoptr (JsonNode) root = sim_json_parse (text, (int64_t) strnlen (text, (gsize) length));
  if (root == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM, "!d.IsObject()");
  g_clear_pointer (&d->graph, sim_descriptor_unref);
  return read_plan (d, json_node_get_object (root), profile);
}

cudnnStatus_t
sim_finalize_plan (SimDescriptor *d)
{
  SimDescriptor *config = sim_value_descriptor (d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0);
  int64_t length;
  const char *text = sim_value_data (d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, &length);
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

  if (config == NULL && text == NULL)
    return sim_refuse (CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "assert_finalized == true");
  if (config != NULL)
    {
      d->choice = config->choice;
      d->graph = sim_descriptor_ref (config->graph);
      d->profile = sim_descriptor_ref (config->profile);
    }
  else
    status = load (d, text, length);
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  const char *refusal = sim_engine_refusal (d->choice.engine, d->graph->as_graph, &d->profile->as_profile);
  if (refusal != NULL)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED, "%s", refusal);
  if (d->choice.engine->cannot_run)
    return sim_refuse (CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
                       "there is no run-time compiler");
  d->json = plan_to_json (d);
  return CUDNN_STATUS_SUCCESS;
}
