/* device-profile.h: devices that need not be there, as cuDNN describes them: for plans. */
#ifndef RUNNER_DEVICE_PROFILE_H
#define RUNNER_DEVICE_PROFILE_H

#include <glib.h>

G_BEGIN_DECLS

/*
 * rn_device_profile_load:
 * @name: of a profile that comes with the program ("t4"), or the path of a file, which has a '/' or ends in
 *   ".json"
 *
 * Returns its JSON, which is an object of numbers, texts and lists; only the library knows whether it is
 * whole. Errors: RN_CONFIG_ERROR_USAGE, with the names that there are. (transfer full)
 */
char *rn_device_profile_load (const char *name, GError **error);
/* Bytes of the memory that the device of @json has; 0 where it does not say. */
guint64 rn_device_profile_memory (const char *json);

G_END_DECLS

#endif
