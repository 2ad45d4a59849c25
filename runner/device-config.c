/* device-config.c: the keys that say where a run computes. */
#include "config.h"

#include "runner/device-config.h"

#include "runner/base/registry.h"
#include "runner/config/config.h"
#include "runner/config/schema.h"

#include <string.h>

#define CUDA "cuda"
#define MAX_ORDINAL 4095

/* RnCudaLayout */
static const char *const layout_names[] = { "auto", "nhwc", "nchw", NULL };

const RnKeySpec rn_device_option_keys[] = {
  RN_KEY (
      RnDeviceOptions, tf32, RN_KEY_BOOL, "false",
      "convolutions in single precision may round their inputs to 10 bits, which is several times faster"),
  RN_KEY (RnDeviceOptions, layout, RN_KEY_ENUM, "auto",
          "of activations; auto: nhwc in half precision and with tf32, else nchw", .names = layout_names),
  RN_KEY_END,
};

gboolean
rn_device_is_cuda (const char *name)
{
  return g_str_equal (name, CUDA)
         || (g_str_has_prefix (name, CUDA ":")
             && g_ascii_string_to_unsigned (name + strlen (CUDA ":"), 10, 0, MAX_ORDINAL, NULL, NULL));
}

int
rn_device_ordinal (const char *name)
{
  const char *colon = strchr (name, ':');
  guint64 ordinal = 0;

  if (colon != NULL)
    g_ascii_string_to_unsigned (colon + 1, 10, 0, MAX_ORDINAL, &ordinal, NULL);
  return (int) ordinal;
}

static const char *
check_name (const RnNode *node, GError **error)
{
  static const char *const names[] = { "cpu", CUDA, NULL };

  if (rn_node_kind (node) != RN_NODE_STRING)
    {
      rn_node_error (node, error, "needs cpu, cuda, cuda:N, or a map with one of them as type");
      return NULL;
    }
  const char *name = rn_node_as_string (node);
  if (g_str_equal (name, "cpu") || rn_device_is_cuda (name))
    return name;
  const char *nearest = g_str_equal (name, "gpu") ? CUDA : rn_suggest (name, names);
  if (nearest != NULL)
    rn_node_error (node, error, "no device \"%s\"; did you mean \"%s\"? There are cpu, cuda and cuda:N", name,
                   nearest);
  else
    rn_node_error (node, error, "no device \"%s\"; there are cpu, cuda and cuda:N", name);
  return NULL;
}

/* `device: {type: cuda, tf32: true}`, over what `device_options:` says. */
static const char *
read_map (const RnNode *map, const RnNode *other, RnDeviceOptions *options, GError **error)
{
  const RnNode *type = rn_node_get (map, "type");
  RnDeviceOptions given;

  if (type == NULL)
    {
      rn_node_error (map, error, "the type is missing; what works: device: {type: cuda}");
      return NULL;
    }
  if (!rn_keys_parse (rn_device_option_keys, map, &given, NULL, error))
    return NULL;
  for (const RnKeySpec *key = rn_device_option_keys; key->name != NULL; key++)
    if (other != NULL && rn_node_get (map, key->name) != NULL && rn_node_get (other, key->name) != NULL)
      {
        rn_node_error (rn_node_get (map, key->name), error, "device_options has it too; leave one out");
        return NULL;
      }
  if (rn_node_get (map, "tf32") != NULL)
    options->tf32 = given.tf32;
  if (rn_node_get (map, "layout") != NULL)
    options->layout = given.layout;
  return check_name (type, error);
}

const char *
rn_device_config_read (const RnNode *root, RnDeviceOptions *options, GError **error)
{
  const RnNode *node = rn_node_get (root, "device"), *other = rn_node_get (root, "device_options");

  if (rn_node_is_null (node))
    return "cpu";
  return rn_node_kind (node) == RN_NODE_MAP ? read_map (node, other, options, error)
                                            : check_name (node, error);
}
