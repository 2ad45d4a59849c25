/* sniff.h: what somebody gave in place of a configuration. */
#ifndef RUNNER_CONFIG_SNIFF_H
#define RUNNER_CONFIG_SNIFF_H

#include <glib.h>

G_BEGIN_DECLS

/* How one writes a Python configuration of MMDetection as a file that this program reads. */
#define RN_CONFIG_FROM_PYTHON                                                                              \
  "python3 -c \"import mmcv; mmcv.dump(mmcv.Config.fromfile('FILE.py')._cfg_dict.to_dict(), 'FILE.json', " \
  "indent=1)\""

/* "a JPEG image", "a PyTorch checkpoint" and so on, by the first bytes; NULL for what may be text. */
const char *rn_sniff_content (const char *data, gsize length);

/*
 * Line from 1 of the first statement of a Python file: "NAME = VALUE", an import or a def. 0 for other text.
 * Only the first line that is neither empty nor a comment counts; no map of YAML begins like that.
 */
int rn_sniff_python (const char *text, gsize length);

/* The entry of its folder that @path, which is not there, may have meant, with the folder. NULL: nothing
 * near. (transfer full) */
char *rn_sniff_nearest_file (const char *path);

G_END_DECLS

#endif
