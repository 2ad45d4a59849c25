/* error.h: error domains of the control path and the status codes of the step path. */
#ifndef RUNNER_BASE_ERROR_H
#define RUNNER_BASE_ERROR_H

#include <glib.h>

G_BEGIN_DECLS

#define RN_CONFIG_ERROR (rn_config_error_quark ())
GQuark rn_config_error_quark (void);
typedef enum
{
  RN_CONFIG_ERROR_SYNTAX, /* not YAML, or not our YAML */
  RN_CONFIG_ERROR_KEY,    /* unknown key, missing key */
  RN_CONFIG_ERROR_VALUE,  /* wrong type or out of bounds */
  RN_CONFIG_ERROR_USAGE,  /* command line */
} RnConfigError;

#define RN_DATA_ERROR (rn_data_error_quark ())
GQuark rn_data_error_quark (void);
typedef enum
{
  RN_DATA_ERROR_MISSING,
  RN_DATA_ERROR_FORMAT,
  RN_DATA_ERROR_EMPTY, /* nothing left to train or to test on */
} RnDataError;

#define RN_CHECKPOINT_ERROR (rn_checkpoint_error_quark ())
GQuark rn_checkpoint_error_quark (void);
typedef enum
{
  RN_CHECKPOINT_ERROR_MISSING,
  RN_CHECKPOINT_ERROR_DAMAGED,
  RN_CHECKPOINT_ERROR_MISMATCH,
  RN_CHECKPOINT_ERROR_WRITE,
} RnCheckpointError;

#define RN_DEVICE_ERROR (rn_device_error_quark ())
GQuark rn_device_error_quark (void);
typedef enum
{
  RN_DEVICE_ERROR_MISSING, /* no such device */
  RN_DEVICE_ERROR_MEMORY,  /* it would not fit */
  RN_DEVICE_ERROR_KERNEL,  /* an op failed or has no kernel */
} RnDeviceError;

#define RN_RUN_ERROR (rn_run_error_quark ())
GQuark rn_run_error_quark (void);
typedef enum
{
  RN_RUN_ERROR_FAILED,
} RnRunError;

/*
 * Exit code of the program for @error: 2 for configuration, a missing input and usage, 3 for a missing device
 * or memory, else 1.
 */
int rn_error_exit_code (const GError *error);

/*
 * @text fit for a terminal: '?' for each control character, U+FFFD for what is not UTF-8, and "..." for what
 * follows 4,096 bytes. With @lines, ends of lines stay. (transfer full)
 */
char *rn_printable (const char *text, gboolean lines);
/* g_set_error for messages that quote a file's bytes: the whole message is made printable. */
void rn_set_error (GError **error, GQuark domain, int code, const char *format, ...) G_GNUC_PRINTF (4, 5);

/*
 * Step path: no text, no allocation. Converted to a GError once, by the executor, with op, shapes and
 * iteration.
 */
typedef enum
{
  RN_STATUS_OK,
  RN_STATUS_SHAPE,       /* sizes do not fit the op */
  RN_STATUS_DTYPE,
  RN_STATUS_UNSUPPORTED, /* no kernel takes the call */
  RN_STATUS_MEMORY,
  RN_STATUS_DEVICE,      /* a vendor library failed */
} RnStatus;

const char *rn_status_name (RnStatus status);

G_END_DECLS

#endif
