/* text-line.h: the lines of a log for people, in MMCV's form. */
#ifndef HOOKS_TEXT_LINE_H
#define HOOKS_TEXT_LINE_H

#include <runner/engine.h>

G_BEGIN_DECLS

/* "Epoch [1][50/100]<TAB>lr: ..."; @by_epoch FALSE: "Iter [50/1000]<TAB>...". @peak: bytes. (transfer full)
 */
char *rn_text_line_train (const RnRunner *runner, const RnRecord *means, gboolean by_epoch, double eta_s,
                          guint64 peak);
/*
 * "Epoch(val) [1][20]<TAB>mAP: 0.7000, ..."; @by_epoch FALSE: "Iter(val) [100]<TAB>...". @values: whose
 * fractional numbers are shown, without times. @count: images or batches. (transfer full)
 */
char *rn_text_line_val (const RnRunner *runner, const RnRecord *values, gboolean by_epoch, gint64 epoch,
                        gint64 iter, gint64 count);

/* "time", "data_time", "forward_time", ... */
gboolean rn_log_is_time (const char *name);

G_END_DECLS

#endif
