/* unused-key.h: keys of MMCV that have no meaning here: accepted, and said to be unused. */
#ifndef HOOKS_UNUSED_KEY_H
#define HOOKS_UNUSED_KEY_H

#include <runner/hook.h>

/* An entry of a table of keys. @help: why it has none, or what to use in its place. */
#define RN_UNUSED_KEY(name_, help_)                         \
  {                                                         \
    .name = (name_), .type = RN_KEY_UNUSED, .help = (help_) \
  }

#endif
