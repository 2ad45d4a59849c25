/*
 * log-window.h: when a logger is due, and what it then shows: the means since it was due before. All loggers
 * have these keys.
 */
#ifndef HOOKS_LOG_WINDOW_H
#define HOOKS_LOG_WINDOW_H

#include "hooks/counting.h"
#include "hooks/unused-key.h"

G_BEGIN_DECLS

typedef struct
{
  gint64 interval; /* key; after rn_log_window_init never null */
  gboolean ignore_last;
  int by_epoch;     /* RN_BY_* */
  gint64 last_line; /* finished iterations when it was due before */
} RnLogWindow;

#define RN_LOG_WINDOW_KEY_(Struct, field, type_, deflt_, help_, ...)                                      \
  {                                                                                                       \
    .name = #field, .type = (type_), .offset = G_STRUCT_OFFSET (Struct, window.field), .deflt = (deflt_), \
    .help = (help_), ##__VA_ARGS__                                                                        \
  }

/* For the table of a hook whose struct has an RnLogWindow named `window`. */
#define RN_LOG_WINDOW_KEYS(Struct)                                                                           \
  RN_LOG_WINDOW_KEY_ (Struct, interval, RN_KEY_INT, "null",                                                  \
                      "iterations between two points; null: log_config.interval", .min = 1, .max = 1e7,      \
                      .flags = RN_KEY_NULLABLE),                                                             \
      RN_LOG_WINDOW_KEY_ (Struct, ignore_last, RN_KEY_BOOL, "true",                                          \
                          "nothing for the rest at the end of an epoch, unless it is the epoch's only one"), \
      RN_LOG_WINDOW_KEY_ (Struct, by_epoch, RN_KEY_ENUM, "auto",                                             \
                          "count within the epoch; auto: as the runner does", .names = rn_by_epoch_names),   \
      RN_UNUSED_KEY ("reset_flag", "each logger has means of its own")

/* In init. Takes the hook out of before_train_iter, unless the run starts with an evaluation. */
void rn_log_window_init (RnLogWindow *window, RnHook *hook, RnRunner *runner);
gboolean rn_log_window_counts_epochs (const RnLogWindow *window, const RnRunner *runner);

/* In after_train_iter: every interval, and at least once an epoch. */
gboolean rn_log_window_is_due (const RnLogWindow *window, const RnRunner *runner);
/* Means over the iterations since the last time; never further back than the interval, nor, counting within
 * epochs, into the epoch before. (transfer full) */
RnRecord *rn_log_window_means (const RnLogWindow *window, const RnRunner *runner);
/* The logger is through with what was due. */
void rn_log_window_close (RnLogWindow *window, const RnRunner *runner);

/* In after_val_epoch: means over the pass of the validation data, of a workflow. (transfer full) */
RnRecord *rn_log_val_means (const RnRunner *runner);

void rn_log_window_save (const RnLogWindow *window, RnRecord *state);
void rn_log_window_load (RnLogWindow *window, const RnRecord *state);

G_END_DECLS

#endif
