/* init_cfg of type Pretrained: where the weights come from. Loading them is not the model's work. */
#include "config.h"

#include "models/builtin.h"

typedef struct
{
  char *checkpoint, *prefix;
} RnPretrainedKeys;

static const RnKeySpec keys[] = {
  RN_KEY (RnPretrainedKeys, checkpoint, RN_KEY_STRING, NULL, "file, or torchvision://NAME",
          .flags = RN_KEY_REQUIRED),
  RN_KEY (RnPretrainedKeys, prefix, RN_KEY_STRING, "null",
          "only the tensors of the file whose names begin so, without it", .flags = RN_KEY_NULLABLE),
  { .name = "map_location", .type = RN_KEY_UNUSED, .help = "no meaning here" },
  RN_KEY_END,
};

static gboolean
make (gconstpointer self, const RnNode *config, gpointer out, GError **error)
{
  const RnPretrainedKeys *k = self;
  *(char **) out = g_strdup (k->checkpoint);
  return TRUE;
}

const RnMakerDesc rn_pretrained_desc = {
  .component = { "Pretrained", "weights of a checkpoint", sizeof (RnPretrainedKeys), keys },
  .make = make,
};
